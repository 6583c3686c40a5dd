import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { readBootId } from './boot-id.ts';

t.test('a boot is identified by the kernel’s boot id and the start of process 1', async (t) => {
  const folder = temporaryFolder(t);
  t.equal(readBootId(folder), null);
  mkdirSync(join(folder, 'sys/kernel/random'), { recursive: true });
  mkdirSync(join(folder, '1'));
  writeFileSync(join(folder, 'sys/kernel/random/boot_id'), '9b1c\n');
  t.equal(readBootId(folder), '9b1c/');
  const fields = Array.from({ length: 50 }, (_, n) => String(n + 3)); // Named by their numbers in proc(5), from the third on.
  writeFileSync(join(folder, '1/stat'), `1 (a (strange) name) ${fields.join(' ')}\n`);
  t.equal(readBootId(folder), '9b1c/22');
  t.match(readBootId('/proc'), /^[0-9a-f-]{36}\//);
  t.equal(readBootId('/proc'), readBootId('/proc'));
});
