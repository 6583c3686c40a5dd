import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { ShutdownContext } from '../core/shutdown-ports.ts';
import { UnitList } from './units.ts';

const CONTEXT = {} as ShutdownContext; // A unit is told nothing.

async function stopAll(units: readonly string[], path: string): Promise<(string | null)[]> {
  const outcomes: (string | null)[] = [];
  for (const item of await new UnitList(units, { PATH: path }, () => undefined).list()) outcomes.push(await item.start(CONTEXT).ended);
  return outcomes;
}

t.test('units are stopped one by one, by their exact names', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-units-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const script = `#!/bin/sh\nprintf '%s|' "$@" >> ${folder}/calls\necho >> ${folder}/calls\n[ "$4" != b.service ] || { echo "Unit b.service not loaded." >&2; exit 5; }\n`;
  writeFileSync(join(folder, 'systemctl'), script);
  chmodSync(join(folder, 'systemctl'), 0o755);
  const outcomes = await stopAll(['a.service', 'b.service', 'robot@left arm.service'], `${folder}:${process.env['PATH']}`);
  t.same(outcomes, [null, 'exit code 5; its last words: Unit b.service not loaded.', null]);
  t.same(readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n'), [
    '--no-ask-password|stop|--|a.service|',
    '--no-ask-password|stop|--|b.service|',
    '--no-ask-password|stop|--|robot@left arm.service|',
  ]);
});

t.test('a machine without systemd says so', async (t) => {
  t.match(await stopAll(['a.service'], '/nowhere'), [/cannot be started: ENOENT/]);
});
