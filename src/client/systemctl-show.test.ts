import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { numberOf, parseShownUnits, showUnits } from './systemctl-show.ts';

/** An environment whose only program is a systemctl with this script. */
function systemctl(t: Test, script: string): NodeJS.ProcessEnv {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`);
  chmodSync(join(folder, 'systemctl'), 0o755);
  return { PATH: folder };
}

t.test('returns the properties of several units', async (t) => {
  const text = 'Id=a.service\nActiveState=active\nDescription=x=y\n\nActiveState=inactive\nId=b.service\n';
  t.same(parseShownUnits(text, ['Id', 'ActiveState', 'Description']), [
    { Id: 'a.service', ActiveState: 'active', Description: 'x=y' },
    { Id: 'b.service', ActiveState: 'inactive', Description: '' },
  ]);
  t.same(parseShownUnits('', ['Id']), []);
  t.equal(numberOf('268435456'), 268_435_456);
  for (const none of ['[not set]', 'infinity', '18446744073709551615', '', '-1']) t.equal(numberOf(none), null, none);
});

t.test('parsing does not fail for any output of systemctl', async () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'Id=\n[]x9 infty') }), (text) => Array.isArray(parseShownUnits(text, ['Id']))),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('queries all units with one call of systemctl', async (t) => {
  const environment = systemctl(t, 'echo "Id=$*"');
  const given = await showUnits(['a.service', 'b@*.service'], ['Id', 'Result'], { environment });
  t.same(given, { kind: 'units', units: [{ Id: 'show --all --property=Id,Result -- a.service b@*.service', Result: '' }] });
});

t.test('reports why systemctl gave no response', async (t) => {
  t.match(await showUnits(['a'], ['Id'], { environment: { PATH: '/nowhere' } }), { kind: 'no systemd', why: 'systemd is not installed' });
  const complains = (text: string) => showUnits(['a'], ['Id'], { environment: systemctl(t, `echo "${text}" >&2; exit 1`) });
  for (const bus of ['bus', 'system scope bus via local transport']) {
    const complaint = `Failed to connect to ${bus}: No such file or directory`;
    t.match(await complains(complaint), { kind: 'no systemd', why: 'D-Bus is not installed' }, 'of systemd 252, 257');
  }
  t.match(await complains('System has not been booted with systemd as init system (PID 1). Cannot operate.'), { kind: 'no systemd' });
  t.match(await complains('Failed to connect to bus: Permission denied'), {
    kind: 'failed',
    why: 'systemctl: Failed to connect to bus: Permission denied',
  });
  const ending = new AbortController();
  const hanging = showUnits(['a'], ['Id'], { environment: systemctl(t, 'exec sleep 600'), signal: ending.signal });
  ending.abort(new Error('the run is over'));
  t.same(await hanging, { kind: 'failed', why: 'the run is over' });
});
