import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../src/system/data-folder.ts';

/** The options of `run` that `start` passes to the unit. */
export interface RunRequest {
  readonly out: string;
  readonly duration: string;
  readonly transport: string;
  /** The observed unit. */
  readonly unit: string;
  /** Time of the request, ISO 8601. */
  readonly requested: string;
}

const CURRENT = 'current.json';
const LAST = 'last.json';

/** The files of the current request, which outlives reboots, and of the previous one, below the state folder. */
export class Requests {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'harness');
  }

  get folder(): string {
    return this.#folder;
  }

  /** The unit runs only while this file exists. */
  get currentFile(): string {
    return join(this.#folder, CURRENT);
  }

  current(): RunRequest | null {
    return readRequest(this.currentFile);
  }

  last(): RunRequest | null {
    return readRequest(join(this.#folder, LAST));
  }

  write(request: RunRequest): void {
    makeFolder(this.#folder, 0o750);
    const temporary = `${this.currentFile}.new`;
    const file = fs.openSync(temporary, 'w', 0o640);
    try {
      fs.writeSync(file, `${JSON.stringify(request, null, 2)}\n`);
      fs.fdatasyncSync(file);
    } finally {
      fs.closeSync(file);
    }
    fs.renameSync(temporary, this.currentFile);
  }
}

/** The request is done: the unit does not run at the next boot. */
export function settleRequest(currentFile: string): void {
  try {
    fs.renameSync(currentFile, join(dirname(currentFile), LAST));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Null: there is none. Throws if it cannot be read, and with what to do if it is no request. */
export function readRequest(file: string): RunRequest | null {
  let content: string;
  try {
    content = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const request = JSON.parse(content) as RunRequest;
    if (typeof request.out === 'string' && typeof request.duration === 'string') return request;
  } catch {
    // As below.
  }
  throw new Error(`${file} is no request of \`edge-health harness start\`; remove it, and start again`);
}
