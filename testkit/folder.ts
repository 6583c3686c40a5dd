import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** Containers often have 64 MB there, which two suites with a synthetic week each would fill. */
const ENOUGH_BYTES = 1024 ** 3;

/** In memory where the machine has enough of it: hundreds of suites that sync to one disk would wait for each other. */
const parent = hasRoom(MEMORY) ? MEMORY : tmpdir();

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ENOUGH_BYTES && mayExecute(folder);
  } catch {
    return false;
  }
}

/** Tests write programs into their folders, and containers often mount this one so that none can be run from it. */
function mayExecute(folder: string): boolean {
  const mount = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .findLast(([, path]) => path === folder);
  return !mount?.[3]?.split(',').includes('noexec');
}

/** What is needed of a tap test: everything made for it is removed at its end. */
export interface Teardown {
  teardown(action: () => unknown): void;
}

/** A fresh folder, removed at the end of the test. */
export function temporaryFolder(t: Teardown): string {
  const folder = mkdtempSync(join(parent, 'edge-health-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
