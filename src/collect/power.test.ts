import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, makeUnreadable, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { PowerSource, readPowerState } from './power.ts';

for (const name of fixtureNames()) {
  t.test(`${name}: undervoltage and throttling as its kernel reports them`, async (t) => {
    const { sysRoot, expect } = materialiseFixture(t, name);
    let events: number | null = null;
    if (expect.packageThrottleCount !== null) {
      events = expect.packageThrottleCount;
      for (let cpu = 0; cpu < expect.cpus; cpu += 1) {
        events += Number(readFileSync(`${sysRoot}/devices/system/cpu/cpu${cpu}/thermal_throttle/core_throttle_count`, 'utf8'));
      }
    }
    t.same(await readPowerState(sysRoot), { undervoltage: expect.undervoltage, throttle_events: events });
  });
}

t.test('the alarm of a Pi is found by its name, and followed', async (t) => {
  const { sysRoot } = materialiseFixture(t, 'pi4');
  const alarm = join(sysRoot, 'class/hwmon/hwmon1/in0_lcrit_alarm');
  t.equal((await readPowerState(sysRoot)).undervoltage, true);
  writeFileSync(alarm, '0\n');
  t.equal((await readPowerState(sysRoot)).undervoltage, false);
  writeTree(sysRoot, { 'class/hwmon/hwmon0/in0_lcrit_alarm': '1\n' });
  t.equal((await readPowerState(sysRoot)).undervoltage, false, 'the alarm of another chip is not it');
});

t.test('an alarm that cannot be read is unknown, not "all is well"', async (t) => {
  const { sysRoot } = materialiseFixture(t, 'pi4');
  const alarm = join(sysRoot, 'class/hwmon/hwmon1/in0_lcrit_alarm');
  for (const text of ['', '\n', 'off', '-1']) {
    writeFileSync(alarm, text);
    t.equal((await readPowerState(sysRoot)).undervoltage, null, JSON.stringify(text));
  }
  makeUnreadable(t, alarm, 'EAGAIN');
  t.equal((await readPowerState(sysRoot)).undervoltage, null, 'EAGAIN');
  rmSync(alarm);
  t.equal((await readPowerState(sysRoot)).undervoltage, null, 'absent');
});

t.test('throttling is counted over all cores, and the package once', async (t) => {
  const sysRoot = temporaryFolder(t);
  const counter = (cpu: number, what: string): string => `devices/system/cpu/cpu${cpu}/thermal_throttle/${what}_throttle_count`;
  writeTree(sysRoot, {
    [counter(0, 'core')]: '3\n',
    [counter(1, 'core')]: '4\n',
    [counter(10, 'core')]: '5\n',
    [counter(0, 'package')]: '100\n',
    [counter(1, 'package')]: '100\n',
    'devices/system/cpu/cpufreq/thermal_throttle/core_throttle_count': '1000\n',
  });
  t.equal((await readPowerState(sysRoot)).throttle_events, 112);
  writeFileSync(join(sysRoot, counter(0, 'package')), '');
  t.equal((await readPowerState(sysRoot)).throttle_events, 12, 'without the package');
  for (const cpu of [0, 1, 10]) writeFileSync(join(sysRoot, counter(cpu, 'core')), '');
  t.equal((await readPowerState(sysRoot)).throttle_events, null, 'unknown is not 0');
});

t.test('a machine without such files reports null', async (t) => {
  t.same(await readPowerState(join(temporaryFolder(t), 'missing')), { undervoltage: null, throttle_events: null });
});

t.test('frequent calls cause a read every few seconds, and never two at once', async (t) => {
  const { sysRoot } = materialiseFixture(t, 'pi4');
  const alarm = join(sysRoot, 'class/hwmon/hwmon1/in0_lcrit_alarm');
  let now = 0;
  const source = new PowerSource(sysRoot, () => now);
  const [first, second] = await Promise.all([source.read(), source.read()]);
  t.equal(first.undervoltage, true);
  t.equal(second, first, 'both got the one reading');
  writeFileSync(alarm, '0\n');
  now = 4.9;
  t.equal((await source.read()).undervoltage, true, 'still the reading of a moment ago');
  now = 5;
  t.equal((await source.read()).undervoltage, false, 'read again');
});
