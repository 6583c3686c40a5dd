import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadConfig } from '../../../src/config/load.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';

const NOBODY = 65_534;

t.test('a configuration that cannot be read for lack of permission is an error with that reason', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'secret.yaml');
  writeFileSync(path, '');
  chmodSync(folder, 0o755);
  chmodSync(path, 0o000);
  process.seteuid?.(NOBODY);
  t.teardown(() => process.seteuid?.(0));
  t.match(loadConfig(path), { ok: false, errors: [{ file: path, found: 'permission denied' }] });
});
