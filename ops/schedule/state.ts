import * as fs from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { type OpsDocument, opsDocumentSchema } from '../../src/client/documents.ts';
import { writeAtomically } from '../../src/core/files/atomic-file.ts';
import { makeFolder } from '../../src/core/files/data-folder.ts';
import { privateFolderInMemory, runtimeFolder, shortName } from '../../src/core/files/runtime-folder.ts';
import type { Log } from '../../src/core/ports.ts';

const FILE = 'jobs.json';
/** A link beside the durable copy, to the folder of the live one. */
const LINK = 'live';
/** A `running` state with an older heartbeat comes from a scheduler that was killed. */
const BEAT_SECONDS = 180;

export const NEVER: OpsDocument = { scheduler: { state: 'never', started: null, beat: null }, jobs: [] };

/** The folder of the scheduler's state and of the locks; created if missing. */
export function opsFolder(dataFolder: string): string {
  const folder = join(dataFolder, 'ops');
  if (!fs.existsSync(folder)) makeFolder(folder, 0o750);
  return folder;
}

/**
 * The folder of the live state, in memory (tmpfs) if possible, because its writes would wear out flash; named after the data folder, so
 * that another `storage.path` does not continue with its counters. systemd provides the place; a checkout gets a private one in /dev/shm.
 */
export function liveFolder(dataFolder: string, environment: NodeJS.ProcessEnv): string {
  const runtime = runtimeFolder(environment);
  const name = shortName(fs.realpathSync(dataFolder));
  if (runtime !== null) {
    const folder = join(runtime, name);
    makeFolder(folder, 0o750);
    return folder;
  }
  const inMemory = privateFolderInMemory(join('/dev/shm', `edge-health-ops-${process.getuid?.() ?? 0}-${name}`));
  if (inMemory !== null) return inMemory;
  const onDisk = join(opsFolder(dataFolder), 'state');
  makeFolder(onDisk, 0o750);
  return onDisk;
}

/** Replaces a small file; on failure, the old one stays unchanged. */
export function replaceFile(file: string, text: string): void {
  const temporary = `${file}.new`;
  try {
    fs.writeFileSync(temporary, text, { mode: 0o640 });
    fs.renameSync(temporary, file);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}

/** Returns null if there is no such file. Throws for a damaged one. */
function readDocument(file: string): OpsDocument | null {
  try {
    return v.parse(opsDocumentSchema, JSON.parse(fs.readFileSync(file, 'utf8')));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/** If both copies have the same heartbeat, the live copy counts: it is written at every change, the durable one later. */
function newer(live: OpsDocument | null, durable: OpsDocument | null): OpsDocument | null {
  return live && (live.scheduler.beat ?? '') >= (durable?.scheduler.beat ?? '') ? live : durable;
}

/** The scheduler's state, for readers; `isLive`: from the copy in memory. A file that cannot be read counts as missing. */
export function readState(dataFolder: string): { readonly document: OpsDocument; readonly isLive: boolean } {
  const read = (...path: readonly string[]): OpsDocument | null => {
    try {
      return readDocument(join(dataFolder, 'ops', ...path));
    } catch {
      return null;
    }
  };
  const live = read(LINK, FILE);
  const document = newer(live, read(FILE));
  return { document: document ?? NEVER, isLive: document !== null && document === live };
}

/** Whether a scheduler is running now; one that was killed leaves the state `running`. */
export function isRunning({ document, isLive }: ReturnType<typeof readState>, nowMs: number): boolean {
  const { beat, state } = document.scheduler;
  return isLive && state === 'running' && Math.abs(nowMs - Date.parse(beat ?? '')) <= BEAT_SECONDS * 1000;
}

/** The two copies of the state: the live one in memory, and the durable one on disk. */
export class StateFiles {
  readonly #live: string;
  readonly #durable: string;
  readonly #log: Log;
  /** The last write to the disk, and the document to write; null once the write has started. */
  #writing: Promise<void> = Promise.resolve();
  #pending: OpsDocument | null = null;
  /** Failures already logged; each kind is logged once until it is resolved. */
  readonly #failing = new Set<string>();

  constructor(dataFolder: string, environment: NodeJS.ProcessEnv, log: Log) {
    const live = liveFolder(dataFolder, environment);
    this.#live = join(live, FILE);
    this.#durable = join(opsFolder(dataFolder), FILE);
    this.#log = log;
    void this.#attempt('live job state cannot be linked', () => linkTo(live, join(opsFolder(dataFolder), LINK)));
  }

  /** Returns the newer of the two copies; a damaged one is quarantined. */
  load(): OpsDocument {
    return newer(this.#read(this.#live), this.#read(this.#durable)) ?? NEVER;
  }

  saveLive(document: OpsDocument): void {
    void this.#attempt('live job state cannot be written', () => replaceFile(this.#live, JSON.stringify(document)));
  }

  /** Resolves when this document or a later one is on disk, or when the write has failed. */
  saveDurable(document: OpsDocument): Promise<void> {
    // If the disk hangs, only the last document is pending.
    if (this.#pending === null) this.#writing = this.#writing.then(() => this.#writePending());
    this.#pending = document;
    return this.#writing;
  }

  #writePending(): Promise<void> {
    const text = `${JSON.stringify(this.#pending, null, 2)}\n`;
    this.#pending = null;
    return this.#attempt('job state cannot be written to the disk', () => writeAtomically(this.#durable, text));
  }

  #read(file: string): OpsDocument | null {
    try {
      return readDocument(file);
    } catch (error) {
      const moved = `${file}.damaged`;
      const fields = { file, moved, error: (error as Error).message.split('\n')[0] };
      this.#log('warning', 'job state unreadable, quarantined; the counters start again', fields);
      void this.#attempt('damaged job state cannot be quarantined', () => fs.renameSync(file, moved));
      return null;
    }
  }

  async #attempt(failure: string, work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
      if (this.#failing.delete(failure)) this.#log('notice', 'job state can be written again');
    } catch (error) {
      if (!this.#failing.has(failure)) this.#log('error', `${failure}; jobs continue`, { error: (error as Error).message });
      this.#failing.add(failure);
    }
  }
}

function linkTo(target: string, link: string): void {
  if (fs.lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && fs.readlinkSync(link) === target) return;
  fs.rmSync(`${link}.new`, { force: true });
  fs.symlinkSync(target, `${link}.new`);
  fs.renameSync(`${link}.new`, link);
}
