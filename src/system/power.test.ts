import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { ShutdownContext } from '../core/shutdown-ports.ts';
import { dryRunOnly, readBootId } from './power.ts';

t.test('a dry run can be done; the rest is refused, not pretended', async (t) => {
  t.equal(await dryRunOnly.refusal('dry-run'), null);
  await dryRunOnly.perform({ action: 'dry-run' } as ShutdownContext);
  for (const action of ['poweroff', 'reboot', 'halt'] as const) {
    t.match(await dryRunOnly.refusal(action), /cannot do; set it to dry-run/);
    await t.rejects(dryRunOnly.perform({ action } as ShutdownContext), /cannot do/);
  }
});

t.test('a boot is told by the kernel’s id of it and by the start of process 1', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-boot-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  t.equal(readBootId(folder), null);
  mkdirSync(join(folder, 'sys/kernel/random'), { recursive: true });
  mkdirSync(join(folder, '1'));
  writeFileSync(join(folder, 'sys/kernel/random/boot_id'), '9b1c\n');
  t.equal(readBootId(folder), '9b1c/');
  const fields = Array.from({ length: 50 }, (_, n) => String(n + 3)); // Named by their numbers in proc(5), from the third on.
  writeFileSync(join(folder, '1/stat'), `1 (a (strange) name) ${fields.join(' ')}\n`);
  t.equal(readBootId(folder), '9b1c/22');
  t.equal(readBootId('/proc'), readBootId('/proc'));
});
