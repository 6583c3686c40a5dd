import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { safeParse } from 'valibot';
import { readRegularFile } from '../core/files/regular-file.ts';
import { nullAfterTimeout } from '../core/platform/timeout.ts';
import type { Log } from '../core/ports.ts';
import type { OpsDocument } from '../http/api/ops-schema.ts';

/** Two hundred times the usual size; a larger file was not written by the scheduler. */
const MAX_BYTES = 256 * 1024;
/** A running scheduler updates its state at least once a minute. */
const BEAT_SECONDS = 180;
/** If the disk takes longer, the previous state is returned. */
const READ_TIMEOUT_SECONDS = 1;

const NEVER: OpsDocument = { scheduler: { state: 'never', started: null, beat: null }, jobs: [] };

export interface OpsJobsOptions {
  readonly dataPath: string;
  readonly log: Log;
  readonly wallMilliseconds: () => number;
}

/**
 * State of the scheduler's jobs. The scheduler, another process, keeps a current copy in memory (`live`, a link) and one on disk. Files
 * are read on request and only after a change; their contents are validated.
 */
export class OpsJobs {
  readonly #options: OpsJobsOptions;
  readonly #live: JobsFile;
  readonly #durable: JobsFile;
  #refreshing: Promise<void> | null = null;

  constructor(options: OpsJobsOptions) {
    this.#options = options;
    const folder = join(options.dataPath, 'ops');
    this.#live = new JobsFile(join(folder, 'live/jobs.json'), options.log);
    this.#durable = new JobsFile(join(folder, 'jobs.json'), options.log);
  }

  async read(): Promise<OpsDocument> {
    // One read at a time: a hanging disk must not block more than one thread of the pool.
    this.#refreshing ??= this.#refresh();
    await nullAfterTimeout(READ_TIMEOUT_SECONDS, this.#refreshing);
    const live = this.#live.document;
    const durable = this.#durable.document;
    if (live && beatMs(live) >= beatMs(durable)) return this.#isRunning(live) ? live : stopped(live);
    return durable ? stopped(durable) : NEVER;
  }

  async #refresh(): Promise<void> {
    await this.#live.refresh();
    await this.#durable.refresh();
    this.#refreshing = null;
  }

  /** A killed scheduler could not record its end. The clock may have been set since. */
  #isRunning(document: OpsDocument): boolean {
    return Math.abs(this.#options.wallMilliseconds() - beatMs(document)) <= BEAT_SECONDS * 1000;
  }
}

function beatMs(document: OpsDocument | null): number {
  return document?.scheduler.beat ? Date.parse(document.scheduler.beat) : 0;
}

function stopped(document: OpsDocument): OpsDocument {
  const { scheduler } = document;
  return scheduler.state === 'running' ? { ...document, scheduler: { ...scheduler, state: 'stopped' } } : document;
}

class JobsFile {
  readonly #path: string;
  readonly #log: Log;
  /** Identity of the file last read, valid or not. */
  #signature = '';
  #document: OpsDocument | null = null;
  #problem: string | null = null;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** Null: no usable copy. */
  get document(): OpsDocument | null {
    return this.#document;
  }

  /** Reads the file if it has changed. Never rejects. */
  async refresh(): Promise<void> {
    try {
      const { ino, mtimeMs, size } = await promisify(fs.stat)(this.#path);
      const signature = `${ino} ${mtimeMs} ${size}`;
      if (signature === this.#signature) return;
      this.#signature = signature;
      this.#document = await this.#read();
      this.#logProblem(null);
    } catch (error) {
      this.#document = null;
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') {
        this.#signature = '';
        this.#problem = null;
      } else this.#logProblem(message);
    }
  }

  async #read(): Promise<OpsDocument> {
    const text = (await readRegularFile(this.#path, MAX_BYTES)).toString('utf8');
    // Imported on demand: machines without a scheduler should not hold it in memory.
    const { opsDocumentSchema } = await import('../http/api/ops-schema.ts');
    const result = safeParse(opsDocumentSchema, JSON.parse(text), { abortEarly: true });
    if (result.success) return result.output;
    const [{ message, path }] = result.issues;
    throw new Error(`${path?.map(({ key }) => String(key)).join('.') ?? ''}: ${message}`.slice(0, 200));
  }

  #logProblem(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === null) this.#log('notice', 'scheduler state readable again', { file: this.#path });
    else this.#log('warning', 'scheduler state unreadable', { file: this.#path, problem });
  }
}
