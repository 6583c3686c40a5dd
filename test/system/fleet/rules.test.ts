import { spawnSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { FLEET } from '../../../testkit/ops/fleet-files.ts';

function promtool(args: readonly string[], cwd = FLEET): { status: number | null; output: string } {
  const { status, stderr, stdout } = spawnSync('promtool', args, { cwd, encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

t.test('promtool accepts the rules, and their unit tests pass', async (t) => {
  const files = globSync('prometheus/tests/*.test.yml', { cwd: FLEET });
  t.ok(files.length > 0);
  const { output, status } = promtool(['test', 'rules', ...files]);
  t.equal(status, 0, output);
});

t.test('the unit tests detect a changed rule', async (t) => {
  const folder = temporaryFolder(t);
  cpSync(join(FLEET, 'prometheus'), folder, { recursive: true });
  const file = join(folder, 'rules/operations.yml');
  const before = readFileSync(file, 'utf8');
  writeFileSync(file, before.replace('edge_health_storage_up == 0', 'edge_health_storage_up == 1'));
  t.not(readFileSync(file, 'utf8'), before);
  const { output, status } = promtool(['test', 'rules', 'tests/operations.test.yml'], folder);
  t.not(status, 0);
  t.match(output, /EdgeHealthStorageDegraded/);
});
