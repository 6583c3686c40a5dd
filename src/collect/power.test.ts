import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, makeUnreadable, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { until } from '../../testkit/wait.ts';
import { PowerSource, type PowerState, readPowerState } from './power.ts';

/** A source on a tree, with a clock that the test moves. */
class Meter {
  nowSeconds = 5000;
  readonly logged: string[] = [];
  readonly source: PowerSource;

  constructor(sysRoot: string) {
    this.source = new PowerSource(
      sysRoot,
      () => this.nowSeconds,
      (_level, message) => this.logged.push(message),
    );
  }

  /** Takes samples, one a second, until the state is the expected one. */
  async sampleUntil(what: string, isExpected: (state: PowerState) => boolean): Promise<void> {
    await until(what, () => {
      this.nowSeconds += 1;
      this.source.sample();
      return isExpected(this.source.state());
    });
  }
}

function counter(cpu: number, what: string): string {
  return `devices/system/cpu/cpu${cpu}/thermal_throttle/${what}_throttle_count`;
}

/** Processors with the list of their siblings, their package, and the counts of the core and the package. */
function cpuFiles(
  cpus: readonly (readonly [siblings: string, ofPackage: number, core: number, packages: number])[],
): Record<string, string> {
  const files: Record<string, string> = {};
  for (const [cpu, [siblings, ofPackage, core, packages]] of cpus.entries()) {
    files[`devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`] = `${siblings}\n`;
    files[`devices/system/cpu/cpu${cpu}/topology/physical_package_id`] = `${ofPackage}\n`;
    files[counter(cpu, 'core')] = `${core}\n`;
    files[counter(cpu, 'package')] = `${packages}\n`;
  }
  return files;
}

for (const name of fixtureNames()) {
  t.test(`${name}: undervoltage and throttling as its kernel reports them`, async (t) => {
    const { sysRoot, expect } = materialiseFixture(t, name);
    const events =
      expect.packageThrottleCount === null
        ? null
        : expect.throttledCpus
            .map((cpu) => Number(readFileSync(join(sysRoot, counter(cpu, 'core')), 'utf8')))
            .reduce((sum, count) => sum + count, expect.packageThrottleCount);
    t.match(await readPowerState(sysRoot), { undervoltage: expect.undervoltage, throttle_events: events });
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

t.test('brown-outs between two questions are counted, and the last one is known', async (t) => {
  const { sysRoot } = materialiseFixture(t, 'pi4');
  const alarm = join(sysRoot, 'class/hwmon/hwmon1/in0_lcrit_alarm');
  writeFileSync(alarm, '0\n');
  const meter = new Meter(sysRoot);
  await meter.source.search();
  t.match(meter.source.state(), { undervoltage: false, undervoltage_events: 0, lastUndervoltageSeconds: null });
  for (const times of [1, 2, 3]) {
    writeFileSync(alarm, '1\n');
    await meter.sampleUntil('it is low', ({ undervoltage }) => undervoltage === true);
    t.equal(meter.source.state().undervoltage_events, times);
    writeFileSync(alarm, '0\n');
    await meter.sampleUntil('it is not', ({ undervoltage }) => undervoltage === false);
  }
  const { lastUndervoltageSeconds, ...state } = meter.source.state();
  t.match(state, { undervoltage: false, undervoltage_events: 3 });
  t.ok((lastUndervoltageSeconds ?? 0) > 5000);
  t.equal(meter.logged[0], 'undervoltage detected');
  rmSync(alarm);
  await meter.sampleUntil('it is unknown', ({ undervoltage }) => undervoltage === null);
  t.match(meter.source.state(), { undervoltage_events: 3, lastUndervoltageSeconds }, 'what was seen is kept');
  renameSync(join(sysRoot, 'class/hwmon/hwmon1'), join(sysRoot, 'class/hwmon/hwmon9'));
  writeFileSync(join(sysRoot, 'class/hwmon/hwmon9/in0_lcrit_alarm'), '1\n');
  await meter.sampleUntil('it is found under another number', ({ undervoltage }) => undervoltage === true);
  t.equal(meter.source.state().undervoltage_events, 4);
});

t.test('without the driver rpi_volt, the bits of the firmware show undervoltage and throttling', async (t) => {
  const sysRoot = temporaryFolder(t);
  const path = join(sysRoot, 'devices/platform/soc/soc:firmware/get_throttled');
  writeTree(sysRoot, { 'devices/platform/soc/soc:firmware/get_throttled': '0\n' });
  const meter = new Meter(sysRoot);
  await meter.source.search();
  t.match(meter.source.state(), { undervoltage: false, undervoltage_events: 0, throttle_events: 0 });
  writeFileSync(path, '50005\n');
  await meter.sampleUntil('low and throttled', ({ undervoltage }) => undervoltage === true);
  t.match(meter.source.state(), { undervoltage_events: 1, throttle_events: 1 });
  writeFileSync(path, '0x50008\n');
  await meter.sampleUntil('not low', ({ undervoltage }) => undervoltage === false);
  t.match(meter.source.state(), { undervoltage_events: 1, throttle_events: 1 }, 'still throttled');
  for (const bits of ['50000', '50008', '50000']) {
    writeFileSync(path, `${bits}\n`);
    await meter.source.search();
  }
  t.match(meter.source.state(), { undervoltage_events: 1, throttle_events: 2 });
  const late = new Meter(sysRoot);
  await late.source.search();
  t.match(late.source.state(), { undervoltage: false, undervoltage_events: 1 }, 'the firmware remembers one from before the start');
  writeTree(sysRoot, { 'class/hwmon/hwmon0/name': 'rpi_volt\n', 'class/hwmon/hwmon0/in0_lcrit_alarm': '0\n' });
  const both = new Meter(sysRoot);
  await both.source.search();
  t.match(both.source.state(), { undervoltage: false, undervoltage_events: 0 }, 'the alarm takes precedence');
});

t.test('throttling is counted once a core and once a package', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeTree(
    sysRoot,
    cpuFiles([
      ['0,2', 0, 3, 100],
      ['1,3', 1, 4, 200],
      ['0,2', 0, 3, 100],
      ['1,3', 1, 4, 200],
    ]),
  );
  writeTree(sysRoot, { 'devices/system/cpu/cpufreq/thermal_throttle/core_throttle_count': '1000\n' });
  t.equal((await readPowerState(sysRoot)).throttle_events, 307);
  for (const cpu of [0, 1, 2, 3]) rmSync(join(sysRoot, counter(cpu, 'package')));
  t.equal((await readPowerState(sysRoot)).throttle_events, 7, 'without a package');
  for (const cpu of [0, 1, 2, 3]) writeFileSync(join(sysRoot, counter(cpu, 'core')), '');
  t.equal((await readPowerState(sysRoot)).throttle_events, null, 'unknown is not 0');
  writeTree(sysRoot, { [counter(0, 'core')]: '3\n', [counter(1, 'core')]: '4\n' });
  for (const cpu of [0, 1, 2, 3]) rmSync(join(sysRoot, `devices/system/cpu/cpu${cpu}/topology`), { recursive: true });
  t.equal((await readPowerState(sysRoot)).throttle_events, 7, 'without a topology, each processor is a core');
});

t.test('the count of throttling does not fall when a processor goes offline, and goes on with its sibling', async (t) => {
  const sysRoot = temporaryFolder(t);
  const folder = (cpu: number): string => join(sysRoot, `devices/system/cpu/cpu${cpu}`);
  writeTree(
    sysRoot,
    cpuFiles([
      ['0-1', 0, 250, 10],
      ['0-1', 0, 250, 10],
      ['2', 0, 30, 10],
    ]),
  );
  const meter = new Meter(sysRoot);
  await meter.source.search();
  t.equal(meter.source.state().throttle_events, 290);
  for (const cpu of [0, 2]) renameSync(folder(cpu), join(sysRoot, `offline${cpu}`));
  writeFileSync(join(folder(1), 'topology/thread_siblings_list'), '1\n');
  await meter.source.search();
  t.equal(meter.source.state().throttle_events, 290);
  writeTree(sysRoot, { [counter(1, 'core')]: '251\n', [counter(1, 'package')]: '11\n' });
  await meter.sampleUntil('the sibling counts on', ({ throttle_events }) => throttle_events === 292);
  for (const cpu of [0, 2]) renameSync(join(sysRoot, `offline${cpu}`), folder(cpu));
  writeFileSync(join(folder(1), 'topology/thread_siblings_list'), '0-1\n');
  await meter.source.search();
  t.equal(meter.source.state().throttle_events, 292, 'nor when it is back with a smaller count');
  writeTree(sysRoot, { [counter(0, 'core')]: '260\n', [counter(2, 'core')]: '40\n' });
  await meter.sampleUntil('both count on', ({ throttle_events }) => throttle_events === 260 + 40 + 11);
});

t.test('a machine without such files reports null', async (t) => {
  t.same(await readPowerState(join(temporaryFolder(t), 'missing')), {
    undervoltage: null,
    undervoltage_events: null,
    lastUndervoltageSeconds: null,
    throttle_events: null,
  });
});
