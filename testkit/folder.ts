import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** Containers often limit /dev/shm to 64 MB, which would be filled by two suites that each create a synthetic week. */
const ENOUGH_BYTES = 1024 ** 3;

/** In memory if there is enough, because hundreds of suites that sync to one disk would block each other. */
const parent = isUsable(MEMORY) ? MEMORY : tmpdir();

function isUsable(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ENOUGH_BYTES && mayExecute(folder);
  } catch {
    return false;
  }
}

/** Whether programs can be executed from the folder, which tests need: containers often mount /dev/shm with noexec. */
function mayExecute(folder: string): boolean {
  const mount = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .findLast(([, path]) => path === folder);
  return !mount?.[3]?.split(',').includes('noexec');
}

/** The part of a tap test that registers cleanup actions. */
export interface Teardown {
  teardown(action: () => unknown): void;
}

/** A fresh folder, removed at the end of the test. */
export function temporaryFolder(t: Teardown): string {
  const folder = mkdtempSync(join(parent, 'edge-health-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
