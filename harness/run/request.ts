import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../src/system/data-folder.ts';

/** What `start` asks the unit to do: options of `run`. */
export interface RunRequest {
  readonly out: string;
  readonly duration: string;
  readonly transport: string;
  /** The unit that is watched. */
  readonly unit: string;
  /** When it was asked for, ISO 8601. */
  readonly requested: string;
}

const CURRENT = 'current.json';
const LAST = 'last.json';

/** Below the state folder: a request that is to be carried out, over reboots, and the one before. */
export class Requests {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'harness');
  }

  get folder(): string {
    return this.#folder;
  }

  /** The unit runs only while this is there. */
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

/** The request has been carried out: nothing is to be done at the next boot. */
export function settleRequest(currentFile: string): void {
  try {
    fs.renameSync(currentFile, join(dirname(currentFile), LAST));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Null: there is none. Throws where it cannot be read, and with what to do where it holds something else. */
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
