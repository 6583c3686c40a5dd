import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** A folder of the test's own, in memory where the machine has that, removed at its end. */
export function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'edge-health-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
