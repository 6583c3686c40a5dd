import { closeSync, openSync, readFileSync, readSync, realpath, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from '../core/files/atomic-file.ts';
import { recordedErrors } from '../core/files/recorded-errors.ts';
import { readRegularFileSync } from '../core/files/regular-file.ts';
import {
  type FstabEntry,
  fileSystemFault,
  fileSystemOf,
  fstabMountPoint,
  isWithin,
  type Mount,
  parseFstab,
  parseMounts,
  unmountedPoint,
} from '../core/mounts.ts';
import type { Log } from '../core/ports.ts';

export interface PathMountsOptions {
  readonly procRoot: string;
  readonly sysRoot: string;
  readonly fstabFile: string;
  /** Its file FILE keeps the mount point of each path across restarts. */
  readonly dataFolder: string;
  /** Why the last write to the data folder failed; null: it succeeded. */
  readonly writeError: () => string | null;
  readonly log: Log;
}

const FILE = 'mount_points.json';
const MAX_SAVED_BYTES = 1024 * 1024;

interface Watched {
  readonly path: string;
  /** Without symbolic links, as far as known. */
  real: string;
  /** Whether `real` was determined since the mounts changed. */
  isResolved: boolean;
  mount: Mount | null;
  missing: string | null;
  fault: string | null;
}

/** At most this often is the table of mounts read, and the count of a file system's errors. */
const TABLE_SECONDS = 0.1;
const FAULT_SECONDS = 10;
/** Errors of a disk or of a read-only file system, from the kernel and from SQLite. A full disk is not among them. */
const DISK_ERROR = /\b(?:EROFS|EIO)\b|disk I\/O error|readonly database/;

/**
 * Watches which file system each path is in, so that a path whose mount is gone is not measured as the file system below it. Its functions
 * may be called for every sample.
 */
export class PathMounts {
  readonly #options: PathMountsOptions;
  readonly #watched: ReadonlyMap<string, Watched>;
  readonly #dataFolder: string;
  readonly #file: string;
  readonly #fstab: readonly FstabEntry[];
  /** The mount point of each path that was not on the root file system when it was last measured. */
  readonly #remembered: Map<string, string>;
  readonly #errors = new Map<string, number>();
  readonly #tableSeconds: number;
  #descriptor: number | null = null;
  #buffer = Buffer.allocUnsafeSlow(8192);
  /** The last content of the file. */
  #table = Buffer.alloc(0);
  #mounts: readonly Mount[] = [];
  #dataDevice: string | null = null;
  #isSaved: boolean;
  #isSaving = false;
  #hasFailed = false;
  #readSeconds = -Infinity;
  #faultsSeconds = -Infinity;

  constructor(paths: readonly string[], options: PathMountsOptions) {
    this.#options = options;
    const watched = (path: string): Watched => ({ path, real: path, isResolved: false, mount: null, missing: null, fault: null });
    this.#watched = new Map(paths.map((path) => [path, watched(path)]));
    this.#fstab = parseFstab(ifReadable(() => readFileSync(options.fstabFile, 'utf8')) ?? '');
    this.#dataFolder = ifReadable(() => realpathSync(options.dataFolder)) ?? options.dataFolder;
    this.#file = join(options.dataFolder, FILE);
    const saved = readPoints(this.#file);
    // A path that was removed from the configuration is forgotten.
    this.#remembered = new Map(saved.filter(([path]) => this.#watched.has(path)));
    this.#isSaved = this.#remembered.size === saved.length;
    // Nothing can be below the root, so only its faults are of interest.
    this.#tableSeconds = paths.every((path) => path === '/') ? FAULT_SECONDS : TABLE_SECONDS;
  }

  /** Reads the table of mounts if it is due. */
  refresh(nowSeconds: number): void {
    if (nowSeconds - this.#readSeconds >= this.#tableSeconds) {
      this.#readSeconds = nowSeconds;
      if (this.#readTable()) {
        this.#mounts = parseMounts(this.#table.toString());
        this.#dataDevice = fileSystemOf(this.#dataFolder, this.#mounts)?.device ?? null;
        for (const watched of this.#watched.values()) {
          watched.isResolved = false;
          this.#evaluate(watched);
        }
      }
    }
    if (nowSeconds - this.#faultsSeconds < FAULT_SECONDS) return;
    this.#faultsSeconds = nowSeconds;
    for (const watched of this.#watched.values()) {
      const { mount } = watched;
      if (!mount) continue;
      recordedErrors(mount, this.#options.sysRoot, (errors) => {
        this.#errors.set(mount.device, errors);
        this.#evaluate(watched);
      });
    }
    void this.#save();
  }

  /** Whether a path belongs to an automount that has not mounted anything. To read the path would mount it. */
  isIdle(path: string): boolean {
    return this.#of(path).mount?.type === 'autofs';
  }

  /** Determines the file system of a path, and calls back with the reason why the path must not be read, or null. */
  resolve(path: string, callback: (problem: string | null) => void): void {
    const watched = this.#of(path);
    if (watched.isResolved) {
      callback(watched.missing);
      return;
    }
    realpath(path, (error, real) => {
      watched.isResolved = error === null;
      if (!error) watched.real = real;
      this.#evaluate(watched);
      callback(watched.missing ?? error?.message ?? null);
    });
  }

  /** Remembers where a path is mounted that has just been measured. */
  remember(path: string): void {
    const point = this.#of(path).mount?.point ?? '/';
    if (this.#mounts.length === 0 || point === (this.#remembered.get(path) ?? '/')) return;
    if (point === '/') this.#remembered.delete(path);
    else this.#remembered.set(path, point);
    this.#isSaved = false;
    void this.#save();
  }

  /** Why a path that can be read is faulty all the same, or null. */
  faultOf(path: string): string | null {
    const { fault, mount } = this.#of(path);
    const error = this.#options.writeError();
    if (fault !== null || error === null || mount === null || mount.device !== this.#dataDevice || !DISK_ERROR.test(error)) return fault;
    return `its file system cannot be written: ${error}; see dmesg`;
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #of(path: string): Watched {
    return this.#watched.get(path) as Watched;
  }

  #evaluate(watched: Watched): void {
    const { isResolved, path, real } = watched;
    const remembered = this.#remembered.get(path) ?? null;
    // A symbolic link may lead elsewhere by now.
    const isObsolete = remembered !== null && isResolved && !isWithin(real, remembered);
    const points = [isObsolete ? null : remembered, fstabMountPoint(real, this.#fstab)];
    const missing = this.#mounts.length > 0 ? unmountedPoint(real, points, this.#mounts) : null;
    const mount = fileSystemOf(real, this.#mounts);
    const fault = mount && fileSystemFault(mount, this.#fstab, this.#errors.get(mount.device) ?? 0);
    watched.mount = mount;
    watched.missing = missing && `nothing is mounted on ${missing}; mount it, or remove ${path} from disk.paths if it is gone for good`;
    watched.fault = fault && `${fault.what}; ${fault.remedy}`;
  }

  /** Saves the mount points durably unless they are; a failure is retried after FAULT_SECONDS. */
  async #save(): Promise<void> {
    if (this.#isSaving) return;
    this.#isSaving = true;
    try {
      while (!this.#isSaved) {
        this.#isSaved = true;
        await writeAtomically(this.#file, `${JSON.stringify(Object.fromEntries(this.#remembered))}\n`, { durable: true });
      }
    } catch (error) {
      this.#isSaved = false;
      if (!this.#hasFailed) this.#options.log('warning', 'mount points not saved', { path: this.#file, error: (error as Error).message });
      this.#hasFailed = true;
    }
    this.#isSaving = false;
  }

  /** Reads /proc/self/mountinfo, which the kernel makes from memory; returns whether it has changed. */
  #readTable(): boolean {
    let length = 0;
    try {
      this.#descriptor ??= openSync(join(this.#options.procRoot, 'self/mountinfo'), 'r');
      for (let bytes = -1; bytes !== 0; length += bytes) {
        if (length === this.#buffer.length) this.#buffer = Buffer.concat([this.#buffer], 2 * length);
        bytes = readSync(this.#descriptor, this.#buffer, length, this.#buffer.length - length, length);
      }
    } catch {
      length = 0; // Without the table, nothing is known about mounts.
    }
    const table = this.#buffer.subarray(0, length);
    if (table.equals(this.#table)) return false;
    this.#table = Buffer.from(table);
    return true;
  }
}

function ifReadable<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** The saved mount points by path; none if the file is missing or damaged. */
function readPoints(file: string): [path: string, point: string][] {
  const saved = ifReadable(() => JSON.parse(readRegularFileSync(file, MAX_SAVED_BYTES).toString()) as Record<string, unknown>);
  return Object.entries(saved ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
}
