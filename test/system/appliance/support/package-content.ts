import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Test } from 'tap';

/** One entry of a package's archive, as tar lists it. */
export interface Entry {
  /** `/usr/bin/edge-health`; a folder ends in `/`. */
  readonly path: string;
  /** `-rwxr-xr-x`. */
  readonly mode: string;
  /** `root/root`. */
  readonly owner: string;
  readonly bytes: number;
  /** What a link points to; null: it is not a link. */
  readonly target: string | null;
}

/** The content that a .deb would install on a machine. */
export function listContent(file: string): Entry[] {
  const lines = execFileSync('dpkg-deb', ['--contents', file], { encoding: 'utf8', maxBuffer: 64e6 }).trimEnd().split('\n');
  return lines.map((line) => {
    const [, mode = '', owner = '', bytes = '', rest = ''] = /^(\S+) (\S+) +(\d+) \S+ \S+ (.*)$/.exec(line) ?? [];
    const [path = '', target = null] = rest.split(' -> ');
    return { path: path.slice(1), mode, owner, bytes: Number(bytes), target };
  });
}

/** Unpacks a .deb into a folder that is removed with the test: its files, and DEBIAN/ with the control files. */
export function unpack(t: Test, file: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-package-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  execFileSync('dpkg-deb', ['--raw-extract', file, folder]);
  return folder;
}

/** All files below a folder, relative to it. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** The target and the requirements of a program or library in ELF format. */
export interface Elf {
  readonly machine: 'x86-64' | 'aarch64' | string;
  /** DT_NEEDED. */
  readonly needed: readonly string[];
  /** DT_RUNPATH; null: none. */
  readonly runpath: string | null;
  /** Alignment of its segments in bytes: the largest page size of a kernel that can load it. */
  readonly largestPage: number;
  /** The newest required version of each kind of symbol: GLIBC → 2.28. */
  readonly newest: ReadonlyMap<string, string>;
}

const MACHINES: Readonly<Record<number, string>> = { 62: 'x86-64', 183: 'aarch64' };

/** Null: the file is not in ELF format. */
export function readElf(file: string): Elf | null {
  const header = Buffer.alloc(20);
  const handle = openSync(file, 'r');
  readSync(handle, header, 0, 20, 0);
  closeSync(handle);
  if (header.toString('latin1', 0, 4) !== '\x7fELF') return null;
  const machine = header.readUInt16LE(18);
  const text = execFileSync('readelf', ['--wide', '--dynamic', '--segments', '--version-info', file], {
    encoding: 'utf8',
    maxBuffer: 64e6,
  });
  const newest = new Map<string, string>();
  const needs = text.slice(text.indexOf('Version needs section'));
  for (const [, kind = '', version = ''] of needs.matchAll(/Name: ([A-Z]+)_(\d[\d.]*)/g)) {
    if (isNewer(version, newest.get(kind) ?? '0')) newest.set(kind, version);
  }
  return {
    machine: MACHINES[machine] ?? String(machine),
    needed: [...text.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map((match) => match[1] as string),
    runpath: /\(RUNPATH\).*\[(.*)\]/.exec(text)?.[1] ?? null,
    largestPage: Math.min(...[...text.matchAll(/^ +LOAD .* (0x[0-9a-f]+)$/gm)].map((match) => Number(match[1]))),
    newest,
  };
}

/** Compares versions that consist of numbers and dots. */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
