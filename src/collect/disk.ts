import { stat, statfs, statfsSync } from 'node:fs';
import type { DiskReading } from '../core/health-status.ts';
import { toHundredths } from '../core/metrics.ts';
import { DEADLINE_SECONDS } from './probe.ts';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';

/** The members of statfs(2) that are used, in blocks. */
export interface Blocks {
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  /** Magic number of the file system. */
  readonly type?: number;
}

/**
 * What `df` shows: 100 × used / (used + available to users), where the reserve for root counts as neither. `df` rounds up to a whole
 * percent; this function does not. Throws when the numbers are impossible.
 */
export function diskPercent({ blocks, bfree, bavail }: Blocks): number {
  const used = blocks - bfree;
  if (blocks <= 0 || used < 0 || bavail < 0 || used + bavail <= 0) {
    throw new ImplausibleReading(`${blocks} blocks, ${bfree} free, ${bavail} available`);
  }
  return (100 * used) / (used + bavail);
}

/** Whether a path is a directory without any permissions, which systemd mounts over paths hidden by ProtectHome=. */
export type IsHidden = (path: string, callback: (hidden: boolean) => void) => void;

const isHidden: IsHidden = (path, callback) => {
  stat(path, (error, found) => callback(error === null && found.isDirectory() && (found.mode & 0o777) === 0));
};

/** Called with the numbers of one path or an error; tests pass one that hangs. */
export type Statfs = (path: string, callback: (error: NodeJS.ErrnoException | null, blocks: Blocks) => void) => void;

/**
 * For / on ext2, ext3 or ext4 the kernel returns the numbers from memory, without looking up a path or waiting for a disk. A thread would
 * cost more than the read. Other file systems may query a server, and other paths may need the disk.
 */
function isInMemory(path: string, type: number | undefined): boolean {
  return path === '/' && type === 0xef53;
}

/** A read that takes longer continues in the background; the other paths do not wait for it. */
const SLOW_SECONDS = DEADLINE_SECONDS / 2;
/**
 * Maximum number of the eight threads of Node's pool (bin/edge-health) that hanging mounts may block, such as a network share whose server
 * is down. The shortest paths are read first, so that / does not wait for the others.
 */
const MAX_READING = 4;

interface DiskPath {
  readonly path: string;
  percent: number;
  /** When it was last read, monotonic seconds. */
  readSeconds: number;
  problem: string | null;
  /** Start of the read in progress; null: none. */
  readingSince: number | null;
  /** Whether the path was checked for a hiding mount. Such a mount exists from the start of the service, so one check suffices. */
  isKnown: boolean;
  /** Whether its numbers are in the kernel's memory; known after the first reading. */
  isInMemory: boolean;
}

/** Reads the usage of the fullest configured path. A path that fails or hangs affects only its own reading. */
export class DiskSource implements Source {
  readonly metric = 'disk_percent';
  readonly #paths: readonly DiskPath[];
  readonly #nowSeconds: () => number;
  readonly #statfs: Statfs;
  readonly #checkHidden: IsHidden;
  readonly #statfsSync: (path: string) => Blocks;
  #timer: NodeJS.Timeout | null = null;

  constructor(
    paths: readonly string[],
    nowSeconds: () => number,
    readBlocks: Statfs = statfs,
    checkHidden: IsHidden = isHidden,
    readInMemory: (path: string) => Blocks = statfsSync,
  ) {
    this.#paths = paths
      .map((path) => ({
        path,
        percent: 0,
        readSeconds: -Infinity,
        problem: 'not read yet',
        readingSince: null,
        isKnown: false,
        isInMemory: false,
      }))
      .sort((a, b) => a.path.length - b.path.length);
    this.#nowSeconds = nowSeconds;
    this.#statfs = readBlocks;
    this.#checkHidden = checkHidden;
    this.#statfsSync = readInMemory;
  }

  /** The state of each path at a time in monotonic seconds. */
  readings(now: number = this.#nowSeconds()): DiskReading[] {
    return this.#paths.map(({ path, percent, problem, readingSince, readSeconds }) => {
      const waiting = readingSince === null ? 0 : now - readingSince;
      if (waiting > SLOW_SECONDS) return { path, percent: null, problem: `no response for ${waiting.toFixed(1)} s` };
      if (problem !== null) return { path, percent: null, problem };
      return { path, percent: now - readSeconds > DEADLINE_SECONDS ? null : percent, problem: null };
    });
  }

  read(callback: ReadCallback): void {
    const [first] = this.#paths;
    if (first?.isInMemory && this.#paths.length === 1) {
      this.#readInMemory(first);
      if (first.problem === null) callback(null, first.percent);
      else callback(new Error(`${first.path}: ${first.problem}`), 0);
      return;
    }
    const waiting = this.#paths.filter(({ readingSince }) => readingSince === null);
    let reading = this.#paths.length - waiting.length;
    let open = waiting.length;
    const finish = (): void => {
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      open = -1;
      for (const path of waiting) path.problem = 'not read: other paths do not respond';
      const readings = this.readings();
      const percents = readings.flatMap(({ percent }) => percent ?? []);
      if (percents.length > 0) callback(null, Math.max(...percents));
      else callback(new Error(readings.map(({ path, problem }) => `${path}: ${problem}`).join('; ')), 0);
    };
    const readNext = (): void => {
      while (reading < MAX_READING) {
        const path = waiting.shift();
        if (!path) return;
        reading += 1;
        this.#readPath(path, () => {
          reading -= 1;
          open -= 1;
          if (open === 0) finish();
          else if (open > 0) readNext();
        });
      }
    };
    if (open === 0) {
      finish();
      return;
    }
    readNext();
    // Even a timer that is cleared would wake the process up.
    if (open > 0) this.#timer = setTimeout(finish, SLOW_SECONDS * 1000);
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }

  #readPath(disk: DiskPath, done: () => void): void {
    if (disk.isInMemory) {
      this.#readInMemory(disk);
      done();
      return;
    }
    disk.readingSince = this.#nowSeconds();
    const finish = (problem: string | null): void => {
      disk.readingSince = null;
      disk.problem = problem;
      done();
    };
    this.#statfs(disk.path, (error, blocks) => {
      if (error) return finish(error.message);
      try {
        this.#record(disk, blocks);
      } catch (problem) {
        return finish((problem as Error).message);
      }
      if (disk.isKnown) return finish(null);
      this.#checkHidden(disk.path, (hidden) => {
        disk.isKnown = !hidden;
        disk.isInMemory &&= !hidden;
        finish(hidden ? 'hidden from the service; allow it with ProtectHome=read-only (systemctl edit edge-health)' : null);
      });
    });
  }

  #readInMemory(disk: DiskPath): void {
    try {
      this.#record(disk, this.#statfsSync(disk.path));
      disk.problem = null;
    } catch (error) {
      disk.problem = (error as Error).message;
    }
  }

  /** Throws when the numbers are impossible. */
  #record(disk: DiskPath, blocks: Blocks): void {
    disk.percent = toHundredths(diskPercent(blocks));
    disk.readSeconds = this.#nowSeconds();
    disk.isInMemory = isInMemory(disk.path, blocks.type);
  }
}
