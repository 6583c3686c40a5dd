import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { safeParse } from 'valibot';
import type { Log } from '../core/ports.ts';
import type { OpsDocument } from '../http/api/ops-schema.ts';
import { orNull } from './patience.ts';

/** Two hundred times what the scheduler writes: a larger file is none of its. */
const MAX_BYTES = 256 * 1024;
/** A scheduler that runs says so at least once a minute. */
const BEAT_SECONDS = 180;
/** What was known before is told when the disk takes longer. */
const DEADLINE_SECONDS = 1;

const NEVER: OpsDocument = { scheduler: { state: 'never', started: null, beat: null }, jobs: [] };

export interface OpsJobsOptions {
  readonly dataPath: string;
  readonly log: Log;
  readonly wallMilliseconds: () => number;
}

/**
 * What the scheduler, another process, tells of its jobs. It leaves a copy in memory that is always new (`live`, a link), and one on
 * the disk. Read only when somebody asks and a file has changed; whatever lies there harms nothing.
 */
export class OpsJobs {
  readonly #options: OpsJobsOptions;
  readonly #live: JobsFile;
  readonly #durable: JobsFile;
  #looking: Promise<void> | null = null;

  constructor(options: OpsJobsOptions) {
    this.#options = options;
    const folder = join(options.dataPath, 'ops');
    this.#live = new JobsFile(join(folder, 'live/jobs.json'), options.log);
    this.#durable = new JobsFile(join(folder, 'jobs.json'), options.log);
  }

  async read(): Promise<OpsDocument> {
    // One look at a time: on a disk that hangs it must not hold more than one thread of the pool.
    this.#looking ??= this.#look();
    await orNull(DEADLINE_SECONDS, this.#looking);
    const live = this.#live.document;
    const durable = this.#durable.document;
    if (live && beatMs(live) >= beatMs(durable)) return this.#isRunning(live) ? live : stopped(live);
    return durable ? stopped(durable) : NEVER;
  }

  async #look(): Promise<void> {
    await this.#live.look();
    await this.#durable.look();
    this.#looking = null;
  }

  /** A scheduler that was killed could not say that it stopped. The clock may have been set since. */
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

/** One of the copies. */
class JobsFile {
  readonly #path: string;
  readonly #log: Log;
  /** Of the file that was read last, whatever came of it. */
  #signature = '';
  #document: OpsDocument | null = null;
  #problem: string | null = null;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** Null: there is none that can be used. */
  get document(): OpsDocument | null {
    return this.#document;
  }

  /** Reads the file where it has changed. Never rejects. */
  async look(): Promise<void> {
    try {
      const { ino, mtimeMs, size } = await promisify(fs.stat)(this.#path);
      const signature = `${ino} ${mtimeMs} ${size}`;
      if (signature === this.#signature) return;
      this.#signature = signature;
      this.#document = await this.#read();
      this.#tell(null);
    } catch (error) {
      this.#document = null;
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') {
        this.#signature = '';
        this.#problem = null;
      } else this.#tell(message);
    }
  }

  async #read(): Promise<OpsDocument> {
    const text = await beginning(this.#path);
    // Loaded when there is something to check: machines without a scheduler need not have it in memory.
    const { opsDocumentSchema } = await import('../http/api/ops-schema.ts');
    const result = safeParse(opsDocumentSchema, JSON.parse(text), { abortEarly: true });
    if (result.success) return result.output;
    const [{ message, path }] = result.issues;
    throw new Error(`${path?.map(({ key }) => String(key)).join('.') ?? ''}: ${message}`.slice(0, 200));
  }

  #tell(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === null) this.#log('notice', 'scheduler state readable again', { file: this.#path });
    else this.#log('warning', 'scheduler state unreadable', { file: this.#path, problem });
  }
}

/** The text of a small file; rejects when it is large, or no file: opening a pipe would wait for its other end. */
async function beginning(path: string): Promise<string> {
  const descriptor = await promisify(fs.open)(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const stats = await promisify(fs.fstat)(descriptor);
    if (!stats.isFile()) throw new Error('not a file');
    if (stats.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
    const buffer = Buffer.allocUnsafe(stats.size);
    const { bytesRead } = await promisify(fs.read)(descriptor, buffer, 0, buffer.length, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    fs.close(descriptor, () => undefined);
  }
}
