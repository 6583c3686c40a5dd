/**
 * Compiles the C and C++ programs of testkit/dds/peers on first use, into node_modules/.cache. Later runs use them until a source or an
 * installed library changes.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../service/service.ts';

const SOURCES = join(ROOT, 'testkit/dds/peers');
const CACHE = join(ROOT, 'node_modules/.cache/edge-health-peers');

/** The targets of testkit/dds/peers/Makefile. */
export type Goal = 'peers' | 'lossy-link';

/** Requirements of each goal: a program or a file, and the Debian package that contains it. */
const NEEDS: Readonly<Record<Goal, readonly (readonly [needed: string, debianPackage: string])[]>> = {
  'lossy-link': [
    ['make', 'make'],
    ['cc', 'g++'],
  ],
  peers: [
    ['make', 'make'],
    ['cc', 'g++'],
    ['g++', 'g++'],
    ['idlc', 'cyclonedds-tools'],
    ['/usr/include/dds/dds.h', 'cyclonedds-dev'],
    ['fastddsgen', 'fastddsgen'],
    ['/usr/include/fastdds/dds/domain/DomainParticipant.hpp', 'libfastrtps-dev'],
  ],
};

function present(needed: string): boolean {
  const folders = needed.startsWith('/') ? [''] : (process.env['PATH'] ?? '').split(':');
  return folders.some((folder) => {
    try {
      accessSync(folder ? join(folder, needed) : needed, needed.startsWith('/') ? constants.R_OK : constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** The reason why `goal` cannot be built here, with the missing Debian packages; false if it can. For tap's `skip`. */
export function buildUnavailable(goal: Goal): string | false {
  const missing = new Set(NEEDS[goal].filter(([needed]) => !present(needed)).map(([, debianPackage]) => debianPackage));
  return missing.size > 0 && `needs the Debian packages ${[...missing].join(', ')}`;
}

/** Changes with the content of the sources and with the installed libraries. */
function fingerprint(): string {
  const hash = createHash('sha256').update(process.arch);
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(SOURCES, file);
    if (statSync(path).isFile()) hash.update(`\n${file}\n`).update(readFileSync(path));
  }
  for (const [needed] of NEEDS.peers.filter(([path]) => path.startsWith('/') && present(path))) {
    hash.update(`\n${needed} ${statSync(needed).mtimeMs}`);
  }
  return hash.digest('hex').slice(0, 16);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Creates the lock file; returns false if another process holds it. Removes a lock whose owner has ended. */
function tryLock(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : Number.NaN;
    // A new lock file may not contain its owner yet.
    if (owner > 0 ? !isRunning(owner) : age > 5000) rmSync(lock, { force: true });
    return false;
  }
}

async function make(goal: Goal, out: string): Promise<void> {
  const child = spawn('make', ['-C', SOURCES, `-j${availableParallelism()}`, `OUT=${out}`, goal], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`make ${goal} failed:\n${output.slice(-6000)}`);
}

/**
 * Builds the goal unless the cache already has it for these sources; returns the folder with its programs. Concurrent test processes wait
 * for the one that builds. The folder is put in place by a rename, so it is always complete.
 */
export async function build(goal: Goal): Promise<string> {
  const folder = join(CACHE, `${goal}-${fingerprint()}`);
  const lock = `${folder}.lock`;
  mkdirSync(CACHE, { recursive: true });
  while (!existsSync(folder)) {
    if (!tryLock(lock)) {
      await new Promise((later) => setTimeout(later, 200));
      continue;
    }
    const out = `${folder}.${process.pid}`;
    try {
      if (!existsSync(folder)) {
        await make(goal, out);
        for (const old of readdirSync(CACHE).filter((name) => new RegExp(`^${goal}-[0-9a-f]{16}$`).test(name))) {
          rmSync(join(CACHE, old), { recursive: true, force: true });
        }
        renameSync(join(out, 'bin'), folder);
      }
    } finally {
      rmSync(out, { recursive: true, force: true });
      rmSync(lock, { force: true });
    }
  }
  return folder;
}
