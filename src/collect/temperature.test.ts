import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, makeUnreadable, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { until } from '../../testkit/wait.ts';
import { toHundredths } from '../core/metrics.ts';
import { TemperatureSource } from './temperature.ts';

/** Longer than the interval at which a missing sensor is searched for. */
const LONG_SECONDS = 60;

/** A source on a tree, with a clock that the test moves. */
class Thermometer {
  nowSeconds = 5000;
  readonly logged: string[] = [];
  readonly source: TemperatureSource;

  constructor(sysRoot: string, configured: string | null = null) {
    this.source = new TemperatureSource(
      sysRoot,
      configured,
      () => this.nowSeconds,
      (_level, message) => this.logged.push(message),
    );
  }

  /** The temperature, or null. */
  read(): Promise<number | null> {
    return new Promise((resolve) => this.source.read((error, value) => resolve(error ? null : value)));
  }

  problem(): Promise<string | null> {
    return new Promise((resolve) => this.source.read((error) => resolve(error?.message ?? null)));
  }

  /** Time for one search to become due, and to end. */
  async searchAgain(): Promise<void> {
    this.nowSeconds += LONG_SECONDS;
    await this.read();
    await this.source.search();
  }
}

/** A processor at 50 °C in hwmon0 and a hotter drive in hwmon1. */
function writePc(root: string): void {
  writeTree(root, {
    'class/hwmon/hwmon0/name': 'coretemp\n',
    'class/hwmon/hwmon0/temp1_label': 'Package id 0\n',
    'class/hwmon/hwmon0/temp1_input': '50000\n',
    'class/hwmon/hwmon1/name': 'nvme\n',
    'class/hwmon/hwmon1/temp1_label': 'Composite\n',
    'class/hwmon/hwmon1/temp1_input': '70000\n',
  });
}

for (const name of fixtureNames()) {
  t.test(`${name}: reads the sensor of its processor`, async (t) => {
    const { sysRoot, expect } = materialiseFixture(t, name);
    const thermometer = new Thermometer(sysRoot);
    await thermometer.source.search();
    const celsius = await thermometer.read();
    t.equal(celsius && toHundredths(celsius), expect.temperatureCelsius);
    t.equal(thermometer.source.choice?.chosen?.id ?? null, expect.sensor);
    t.same(thermometer.logged, [expect.sensor ? 'temperature sensor selected' : 'no temperature sensor']);
  });
}

t.test('before the first search it has no value, and the first reading starts the search', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const thermometer = new Thermometer(sysRoot);
  t.equal(thermometer.source.choice, null);
  t.equal(await thermometer.problem(), 'looking for a sensor');
  await thermometer.source.search();
  t.equal(await until('a reading', () => thermometer.read()), 50);
});

t.test('unavailable while the file is empty, garbled, impossible, failing or absent, and back when it is', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeTree(sysRoot, { 'class/thermal/thermal_zone0/type': 'cpu-thermal\n', 'class/thermal/thermal_zone1/type': 'gpu-thermal\n' });
  const path = join(sysRoot, 'class/thermal/thermal_zone0/temp');
  const good = (millidegrees: number): void => {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, `${millidegrees}\n`);
  };
  good(40000);
  writeFileSync(join(sysRoot, 'class/thermal/thermal_zone1/temp'), '90000\n');
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  t.equal(await thermometer.read(), 40);
  const failures: Record<string, () => void> = {
    empty: () => writeFileSync(path, ''),
    garbled: () => writeFileSync(path, 'N/A\n'),
    impossible: () => writeFileSync(path, '-256000\n'),
    EAGAIN: () => makeUnreadable(t, path, 'EAGAIN'),
    EISDIR: () => makeUnreadable(t, path, 'EIO'),
    absent: () => rmSync(path),
  };
  let millidegrees = 40000;
  for (const [what, fail] of Object.entries(failures)) {
    fail();
    t.equal(await thermometer.read(), null, what);
    t.match(await thermometer.problem(), /\S/, `${what}: a reason`);
    await thermometer.searchAgain();
    t.equal(await thermometer.read(), null, `${what}: another search does not find a substitute`);
    t.equal(thermometer.source.choice?.chosen?.id, 'cpu-thermal');
    millidegrees += 1000;
    good(millidegrees);
    t.equal(await thermometer.read(), millidegrees / 1000, `back after ${what}`);
  }
});

t.test('a momentary error affects that moment only, without a wait for the next search', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const path = join(sysRoot, 'class/hwmon/hwmon0/temp1_input');
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  for (let i = 0; i < 5; i += 1) {
    renameSync(path, `${path}.away`);
    makeUnreadable(t, path, 'EAGAIN');
    t.equal(await thermometer.read(), null);
    rmSync(path);
    renameSync(`${path}.away`, path);
    t.equal(await thermometer.read(), 50);
    thermometer.nowSeconds += 1;
  }
});

t.test('a driver that comes back under another number is found again by its name', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const hwmon = (number: number): string => join(sysRoot, `class/hwmon/hwmon${number}`);
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  t.equal(await thermometer.read(), 50);
  renameSync(hwmon(0), hwmon(7));
  writeFileSync(join(hwmon(7), 'temp1_input'), '55000\n');
  t.equal(await thermometer.read(), null, 'not where it was');
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 55);
  t.match(thermometer.source.choice, { chosen: { id: 'coretemp/Package id 0', path: `${hwmon(7)}/temp1_input` }, reason: /Intel/ });
  t.match(thermometer.source.choice?.rejected, [{ id: 'nvme/Composite', reason: /\S/ }]);
});

t.test('another driver that takes over the number is never read in its place', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const hwmon = (number: number): string => join(sysRoot, `class/hwmon/hwmon${number}`);
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  renameSync(hwmon(0), join(sysRoot, 'unloaded'));
  t.equal(await thermometer.read(), null, 'the driver is gone: sysfs fails before the number is given again');
  renameSync(hwmon(1), hwmon(0));
  for (let i = 0; i < 5; i += 1) {
    t.equal(await thermometer.read(), null, 'the drive is not the processor');
    await thermometer.searchAgain();
  }
  t.match(await thermometer.problem(), /coretemp\/Package id 0/);
  renameSync(join(sysRoot, 'unloaded'), hwmon(1));
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 50, 'and back under its new number');
});

t.test('hwmon numbers swapped during a failure are recognized', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const hwmon = (number: number): string => join(sysRoot, `class/hwmon/hwmon${number}`);
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  renameSync(hwmon(0), hwmon(2));
  // A search was made just now, so that this failure does not start one.
  t.equal(await thermometer.read(), null);
  renameSync(hwmon(1), hwmon(0));
  renameSync(hwmon(2), hwmon(1));
  const seen = new Set<number | null>();
  for (let i = 0; i < 5; i += 1) seen.add(await thermometer.read());
  seen.delete(null);
  t.same([...seen], [50]);
});

t.test('of an Atom, the hottest core is read each time, without a core that is offline, and with it when it is back', async (t) => {
  const sysRoot = temporaryFolder(t);
  const core = (number: number): string => join(sysRoot, `class/hwmon/hwmon0/temp${number + 2}_input`);
  writeTree(sysRoot, { 'class/hwmon/hwmon0/name': 'coretemp\n' });
  for (const number of [0, 1, 2]) {
    writeTree(sysRoot, { [`class/hwmon/hwmon0/temp${number + 2}_label`]: `Core ${number}\n` });
    writeFileSync(core(number), `${50 + number}000\n`);
  }
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  t.equal(await thermometer.read(), 52);
  writeFileSync(core(0), '91000\n');
  t.equal(await thermometer.read(), 91, 'not the one that was the hottest at the start');
  renameSync(core(0), `${core(0)}.offline`);
  t.equal(await thermometer.read(), 52);
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 52);
  renameSync(`${core(0)}.offline`, core(0));
  await thermometer.searchAgain();
  t.equal(await until('a reading', () => thermometer.read()), 91);
  for (const number of [0, 1, 2]) rmSync(core(number));
  t.equal(await thermometer.read(), null, 'no core can be read');
});

t.test('whole degrees stay whole degrees, and millidegrees millidegrees', async (t) => {
  const sysRoot = temporaryFolder(t);
  const path = join(sysRoot, 'class/thermal/thermal_zone0/temp');
  const put = (value: number): void => writeFileSync(path, `${value}\n`);
  writeTree(sysRoot, { 'class/thermal/thermal_zone0/type': 'cpu-thermal\n', 'class/thermal/thermal_zone0/temp': '65\n' });
  const whole = new Thermometer(sysRoot);
  await whole.source.search();
  t.equal(await whole.read(), 65);
  put(1);
  t.equal(await whole.read(), 1);
  put(65535);
  t.equal(await whole.read(), null, 'an impossible value');
  put(66);
  await whole.searchAgain();
  t.equal(await until('a reading', () => whole.read()), 66);
  put(20000);
  const milli = new Thermometer(sysRoot);
  await milli.source.search();
  for (const value of [20000, 900, 65, 0, -65]) {
    put(value);
    t.equal(await milli.read(), value / 1000);
    await milli.searchAgain();
  }
});

t.test('the unit of a configured sensor that gives no value at first is decided when it gives one', async (t) => {
  const sysRoot = temporaryFolder(t);
  const path = join(sysRoot, 'class/thermal/thermal_zone0/temp');
  writeTree(sysRoot, { 'class/thermal/thermal_zone0/type': 'motor\n', 'class/thermal/thermal_zone0/temp': '\n' });
  const thermometer = new Thermometer(sysRoot, 'motor');
  await thermometer.source.search();
  t.equal(await thermometer.read(), null);
  writeFileSync(path, '65\n');
  t.equal(await thermometer.read(), null, 'not 0.065');
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 65);
});

t.test('a second device of the same name is not mistaken for the first one', async (t) => {
  const sysRoot = temporaryFolder(t);
  const hwmon = (number: number): string => join(sysRoot, `class/hwmon/hwmon${number}`);
  const writeDrive = (number: number, address: string, millidegrees: number): void => {
    const device = join(sysRoot, `devices/pci0000:00/${address}/nvme/nvme${number}`);
    mkdirSync(device, { recursive: true });
    writeTree(hwmon(number), { name: 'nvme\n', temp1_label: 'Composite\n', temp1_input: `${millidegrees}\n` });
    symlinkSync(device, join(hwmon(number), 'device'));
  };
  writeDrive(1, '0000:01:00.0', 40000);
  const thermometer = new Thermometer(sysRoot, 'nvme/Composite');
  await thermometer.source.search();
  t.equal(await thermometer.read(), 40);
  renameSync(hwmon(1), join(sysRoot, 'unloaded'));
  writeDrive(0, '0000:02:00.0', 80000);
  t.equal(await thermometer.read(), null);
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), null, 'the other drive is not it');
  renameSync(join(sysRoot, 'unloaded'), hwmon(3));
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 40);
});

t.test('a sensor whose driver is loaded later is found', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeTree(sysRoot, {
    'class/thermal/thermal_zone0/type': 'acpitz\n',
    'class/thermal/thermal_zone0/temp': '30000\n',
    'class/thermal/thermal_zone1/type': 'acpitz\n',
    'class/thermal/thermal_zone1/temp': '45000\n',
  });
  const path = join(sysRoot, 'class/thermal/thermal_zone1/temp');
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  t.equal(await thermometer.read(), 45);
  makeUnreadable(t, path, 'EAGAIN');
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), null, 'not the 30 °C of the other');
  rmSync(path);
  writeFileSync(path, '46000\n');
  t.equal(await thermometer.read(), 46);
});

t.test('a sensor whose driver is loaded later is found', async (t) => {
  const sysRoot = temporaryFolder(t);
  const thermometer = new Thermometer(sysRoot);
  await thermometer.source.search();
  t.equal(await thermometer.read(), null);
  t.match(await thermometer.problem(), /no temperature sensor/);
  writePc(sysRoot);
  t.equal(await thermometer.read(), null, 'not looked for at every reading');
  await thermometer.searchAgain();
  t.equal(await thermometer.read(), 50);
  t.same(thermometer.logged, ['no temperature sensor', 'temperature sensor selected']);
  t.equal(thermometer.source.choice?.chosen?.id, 'coretemp/Package id 0');
});

t.test('a configured sensor takes precedence, and is not replaced while it is missing', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const configured = new Thermometer(sysRoot, 'nvme/Composite');
  await configured.source.search();
  t.equal(await configured.read(), 70);
  const missing = new Thermometer(sysRoot, 'motor/left');
  await missing.source.search();
  t.match(await missing.problem(), /"motor\/left"/);
  await missing.searchAgain();
  t.equal(await missing.read(), null);
  writeTree(sysRoot, {
    'class/hwmon/hwmon2/name': 'motor\n',
    'class/hwmon/hwmon2/temp1_label': 'left\n',
    'class/hwmon/hwmon2/temp1_input': '33000\n',
  });
  await missing.searchAgain();
  t.equal(await missing.read(), 33);
});

t.test('searches requested at the same time are one search, and all callers wait for it', async (t) => {
  const sysRoot = temporaryFolder(t);
  writePc(sysRoot);
  const thermometer = new Thermometer(sysRoot);
  void thermometer.source.search();
  await thermometer.source.search();
  t.equal(thermometer.source.choice?.chosen?.id, 'coretemp/Package id 0');
  t.same(thermometer.logged, ['temperature sensor selected']);
});
