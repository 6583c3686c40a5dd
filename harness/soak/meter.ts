import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readProcess } from '../observe/kernel-counters.ts';
import { DATABASE_FILE } from './fill.ts';
import type { Readings } from './findings.ts';

const EVERY_MS = 1000;

/** Reads what the service's process holds, once a second. */
export class Meter {
  readonly readings: Readings = { at: [], residentBytes: [], files: [], sockets: [], databaseBytes: [], databaseFolderBytes: [] };
  readonly #pid: number;
  readonly #dataFolder: string;
  readonly #bornSeconds: number;
  #timer: NodeJS.Timeout | null = null;

  /** `bornSeconds`: when the process was started, by performance.now. */
  constructor(pid: number, dataFolder: string, bornSeconds: number) {
    this.#pid = pid;
    this.#dataFolder = dataFolder;
    this.#bornSeconds = bornSeconds;
  }

  start(): void {
    this.read();
    this.#timer = setInterval(() => this.read(), EVERY_MS);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  get cpuSeconds(): number | null {
    return readProcess('/proc', this.#pid).cpuSeconds;
  }

  read(): void {
    const { residentBytes } = readProcess('/proc', this.#pid);
    const handles = this.#handles();
    if (residentBytes === null || handles === null) return; // It has ended.
    const { at, databaseBytes, databaseFolderBytes, files, residentBytes: resident, sockets } = this.readings;
    at.push(performance.now() / 1000 - this.#bornSeconds);
    resident.push(residentBytes);
    files.push(handles.length);
    sockets.push(handles.filter((handle) => handle.startsWith('socket:')).length);
    const database = sizeOf(join(this.#dataFolder, DATABASE_FILE));
    databaseBytes.push(database);
    databaseFolderBytes.push(
      ['-wal', '-shm'].reduce((sum, end) => sum + sizeOf(join(this.#dataFolder, `${DATABASE_FILE}${end}`)), database),
    );
  }

  /** What each open file of the process is; null: there is no such process. */
  #handles(): string[] | null {
    const folder = `/proc/${this.#pid}/fd`;
    try {
      return readdirSync(folder).flatMap((name) => {
        try {
          return [readlinkSync(join(folder, name))];
        } catch {
          return []; // Closed between the listing and the look.
        }
      });
    } catch {
      return null;
    }
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
