import { stat, statfs, statfsSync } from 'node:fs';
import type { DiskReading } from '../core/health-status.ts';
import { toHundredths } from '../core/metrics.ts';
import type { PathMounts } from './path-mounts.ts';
import { DEADLINE_SECONDS } from './probe.ts';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';

/** The members of statfs(2) that are used, in blocks. */
export interface Blocks {
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  /** Inodes; 0 in file systems without a fixed number. */
  readonly files?: number;
  readonly ffree?: number;
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

/** What `df -i` shows: the inodes in use, in percent; null for file systems without a fixed number of them. */
export function inodesPercent({ ffree = 0, files = 0 }: Blocks): number | null {
  return files > 0 && ffree >= 0 && ffree <= files ? (100 * (files - ffree)) / files : null;
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
  inodesPercent: number | null;
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

export interface DiskSourceOptions {
  /** Null: where paths are mounted is not watched. */
  readonly mounts?: PathMounts | null;
  readonly statfs?: Statfs;
  readonly isHidden?: IsHidden;
  readonly statfsSync?: (path: string) => Blocks;
}

/** Reads the usage of the fullest configured path. A path that fails or hangs affects only its own reading. */
export class DiskSource implements Source {
  readonly metric = 'disk_percent';
  readonly #paths: readonly DiskPath[];
  readonly #nowSeconds: () => number;
  readonly #mounts: PathMounts | null;
  readonly #statfs: Statfs;
  readonly #checkHidden: IsHidden;
  readonly #statfsSync: (path: string) => Blocks;
  #timer: NodeJS.Timeout | null = null;

  constructor(paths: readonly string[], nowSeconds: () => number, options: DiskSourceOptions = {}) {
    this.#paths = paths
      .map((path) => ({
        path,
        percent: 0,
        inodesPercent: null,
        readSeconds: -Infinity,
        problem: 'not read yet',
        readingSince: null,
        isKnown: false,
        isInMemory: false,
      }))
      .sort((a, b) => a.path.length - b.path.length);
    this.#nowSeconds = nowSeconds;
    this.#mounts = options.mounts ?? null;
    this.#statfs = options.statfs ?? statfs;
    this.#checkHidden = options.isHidden ?? isHidden;
    this.#statfsSync = options.statfsSync ?? statfsSync;
  }

  /** The state of each path at a time in monotonic seconds. */
  readings(now: number = this.#nowSeconds()): DiskReading[] {
    return this.#paths.map((disk) => {
      const { path, readingSince } = disk;
      const waiting = readingSince === null ? 0 : now - readingSince;
      const late = waiting > SLOW_SECONDS ? `no response for ${waiting.toFixed(1)} s` : null;
      const problem = late ?? disk.problem;
      if (problem !== null) return { path, percent: null, inodes_percent: null, problem };
      if (this.#mounts?.isIdle(path)) return { path, percent: null, inodes_percent: null, problem: null };
      if (now - disk.readSeconds > DEADLINE_SECONDS)
        return { path, percent: null, inodes_percent: null, problem: 'its last reading is too old' };
      return { path, percent: disk.percent, inodes_percent: disk.inodesPercent, problem: this.#mounts?.faultOf(path) ?? null };
    });
  }

  read(callback: ReadCallback): void {
    this.#mounts?.refresh(this.#nowSeconds());
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
      else callback(new Error(readings.map(({ path, problem }) => `${path}: ${problem ?? 'its automount is idle'}`).join('; ')), 0);
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
    this.#mounts?.close();
  }

  #readPath(disk: DiskPath, done: () => void): void {
    if (disk.isInMemory) {
      this.#readInMemory(disk);
      done();
      return;
    }
    if (this.#mounts?.isIdle(disk.path)) {
      disk.problem = null;
      done();
      return;
    }
    disk.readingSince = this.#nowSeconds();
    const finish = (problem: string | null): void => {
      disk.readingSince = null;
      disk.problem = problem;
      if (problem === null) this.#mounts?.remember(disk.path);
      done();
    };
    const readBlocks = (problem: string | null): void => {
      if (problem !== null) finish(problem);
      else this.#readBlocks(disk, finish);
    };
    if (this.#mounts) this.#mounts.resolve(disk.path, readBlocks);
    else readBlocks(null);
  }

  #readBlocks(disk: DiskPath, finish: (problem: string | null) => void): void {
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
    const inodes = inodesPercent(blocks);
    disk.inodesPercent = inodes === null ? null : toHundredths(inodes);
    disk.readSeconds = this.#nowSeconds();
    disk.isInMemory = isInMemory(disk.path, blocks.type);
  }
}
