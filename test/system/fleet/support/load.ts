import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { later } from '../../../../testkit/rest.ts';

/** Keeps every core busy until the returned function is called. */
export function busy(t: Test): () => void {
  const children = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  const relax = (): void => {
    for (const child of children) child.kill('SIGKILL');
  };
  t.teardown(relax);
  return relax;
}

function idleTicks(): { idle: number; all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  return { idle: (ticks[3] ?? 0) + (ticks[4] ?? 0), all: ticks.reduce((sum, value) => sum + value, 0) };
}

/** Waits for three seconds in which a twentieth of the CPU was idle; false: whatever else runs here left none in so many seconds. */
export async function calm(seconds: number): Promise<boolean> {
  for (let waited = 0; waited < seconds; waited += 3) {
    const before = idleTicks();
    await later(3000);
    const after = idleTicks();
    if ((after.idle - before.idle) / (after.all - before.all) > 0.05) return true;
  }
  return false;
}

/** A file system of its own in memory, of 4 MB. */
export class SmallDisk {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Null: this user may not mount. */
  static mount(t: Test, folder: string): SmallDisk | null {
    const path = join(folder, 'disk');
    mkdirSync(path);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'edge-health-test', path]).status !== 0) return null;
    t.teardown(() => {
      spawnSync('umount', ['--lazy', path]);
    });
    return new SmallDisk(path);
  }

  fill(): void {
    writeFileSync(join(this.path, 'recording'), Buffer.alloc(3.9 * 1024 * 1024));
  }

  empty(): void {
    rmSync(join(this.path, 'recording'));
  }
}
