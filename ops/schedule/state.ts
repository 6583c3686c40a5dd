import * as fs from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Log } from '../../src/core/ports.ts';
import { type OpsDocument, opsDocumentSchema } from '../../src/http/api/ops-schema.ts';
import { writeAtomically } from '../../src/system/atomic-file.ts';
import { opsFolder, replaceFile } from './folders.ts';

const FILE = 'jobs.json';
/** In the folder of the state: a link to where the live copy is. */
const LINK = 'live';
/** A beat that is older is that of a scheduler that was killed. */
const BEAT_SECONDS = 180;

/** Null: there is no such file. Throws for one that is torn or not ours. */
function readDocument(file: string): OpsDocument | null {
  let text: string;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  return v.parse(opsDocumentSchema, JSON.parse(text));
}

export const NEVER: OpsDocument = { scheduler: { state: 'never', started: null, beat: null }, jobs: [] };

const beatOf = (document: OpsDocument | null): string => document?.scheduler.beat ?? '';

/** With the same beat the live copy: it is written at every change, the durable one later. */
function newer(live: OpsDocument | null, durable: OpsDocument | null): OpsDocument | null {
  return live && beatOf(live) >= beatOf(durable) ? live : durable;
}

/** What the scheduler left, for everybody to read; `isLive`: it is the copy that changes all the time. What cannot be read counts as missing. */
export function readState(dataFolder: string): { readonly document: OpsDocument; readonly isLive: boolean } {
  const read = (file: string): OpsDocument | null => {
    try {
      return readDocument(file);
    } catch {
      return null;
    }
  };
  const live = read(join(dataFolder, 'ops', LINK, FILE));
  const durable = read(join(dataFolder, 'ops', FILE));
  const document = newer(live, durable);
  return { document: document ?? NEVER, isLive: document !== null && document === live };
}

/** Whether a scheduler runs now; one that was killed could not say so. */
export function isRunning({ document, isLive }: ReturnType<typeof readState>, nowMs: number): boolean {
  const { beat, state } = document.scheduler;
  return isLive && state === 'running' && Math.abs(nowMs - Date.parse(beat ?? '')) <= BEAT_SECONDS * 1000;
}

/** The two copies of the state: the live one in memory, and the durable one on the disk. */
export class StateFiles {
  readonly #live: string;
  readonly #durable: string;
  readonly #link: string;
  readonly #log: Log;
  #writing: Promise<void> | null = null;
  #wanted: OpsDocument | null = null;
  /** Each kind of trouble is told once until it is over. */
  readonly #troubles = new Map<string, string>();

  constructor(dataFolder: string, live: string, log: Log) {
    this.#live = join(live, FILE);
    this.#durable = join(opsFolder(dataFolder), FILE);
    this.#link = join(opsFolder(dataFolder), LINK);
    this.#log = log;
    this.#attempt('the live state cannot be linked', () => this.#makeLink(live));
  }

  /** The newer of both copies; what is torn or not ours is set aside. */
  load(): OpsDocument {
    const live = this.#read(this.#live);
    const durable = this.#read(this.#durable);
    return newer(live, durable) ?? NEVER;
  }

  saveLive(document: OpsDocument): void {
    this.#attempt('the live state cannot be written', () => replaceFile(this.#live, JSON.stringify(document)));
  }

  /** Resolves when what was asked for up to now is on the disk, or could not be put there. */
  async saveDurable(document: OpsDocument): Promise<void> {
    this.#wanted = document;
    while (this.#wanted !== null || this.#writing !== null) {
      this.#writing ??= this.#writeWanted();
      await this.#writing;
    }
  }

  async #writeWanted(): Promise<void> {
    const document = this.#wanted;
    this.#wanted = null;
    try {
      if (document) await writeAtomically(this.#durable, `${JSON.stringify(document, null, 2)}\n`);
      this.#over('durable');
    } catch (error) {
      this.#trouble('durable', 'the state cannot be written to the disk', error as Error);
    }
    this.#writing = null;
  }

  #makeLink(target: string): void {
    if (linkTarget(this.#link) === target) return;
    const temporary = `${this.#link}.new`;
    fs.rmSync(temporary, { force: true });
    fs.symlinkSync(target, temporary);
    fs.renameSync(temporary, this.#link);
  }

  #read(file: string): OpsDocument | null {
    try {
      return readDocument(file);
    } catch (error) {
      const aside = `${file}.damaged`;
      this.#log('warning', 'job state unreadable, quarantined; the counters start again', {
        file,
        aside,
        error: (error as Error).message.split('\n')[0],
      });
      this.#attempt('damaged job state cannot be quarantined', () => fs.renameSync(file, aside));
      return null;
    }
  }

  #attempt(what: string, work: () => void): void {
    try {
      work();
      this.#over(what);
    } catch (error) {
      this.#trouble(what, what, error as Error);
    }
  }

  #trouble(kind: string, what: string, { message }: Error): void {
    if (this.#troubles.has(kind)) return;
    this.#troubles.set(kind, message);
    this.#log('error', `${what}; jobs run all the same`, { error: message });
  }

  #over(kind: string): void {
    if (this.#troubles.delete(kind)) this.#log('notice', 'the state of the jobs can be written again');
  }
}

function linkTarget(link: string): string | null {
  try {
    return fs.readlinkSync(link);
  } catch {
    return null;
  }
}
