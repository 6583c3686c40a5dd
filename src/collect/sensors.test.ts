import { globSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, makeUnreadable, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { toHundredths } from '../core/metrics.ts';
import { chooseSensor, findSensors, isPossibleCelsius, parseMillidegrees, type SensorCandidate } from './sensors.ts';
import { OccasionalReader } from './text-file.ts';

/** Thermal zones in the order given, as type and millidegrees. */
function zoneFiles(zones: readonly (readonly [type: string, millidegrees: number])[]): Record<string, string> {
  const files: Record<string, string> = {};
  for (const [index, [type, millidegrees]] of zones.entries()) {
    files[`class/thermal/thermal_zone${index}/type`] = `${type}\n`;
    files[`class/thermal/thermal_zone${index}/temp`] = `${millidegrees}\n`;
  }
  return files;
}

/** Where fixture.json's `thermal_zone0` or `hwmon4/temp1` is. */
function pathOfSource(sysRoot: string, source: string): string {
  return source.startsWith('hwmon') ? `${sysRoot}/class/hwmon/${source}_input` : `${sysRoot}/class/thermal/${source}/temp`;
}

function candidate(id: string, celsius: number | null, path = `/sys/class/hwmon/${id}`): SensorCandidate {
  return { id, path, celsius, problem: celsius === null ? 'EAGAIN: not now' : null };
}

function zone(id: string, celsius: number | null): SensorCandidate {
  return candidate(id, celsius, `/sys/class/thermal/${id}/temp`);
}

t.test('values are converted from millidegrees', async (t) => {
  t.equal(parseMillidegrees('61348\n'), 61.348);
  t.equal(parseMillidegrees('-263200\n'), -263.2);
  t.equal(parseMillidegrees('0'), 0);
  for (const text of ['', '\n', 'N/A', '12.5', '0x20', '45000 mC', '4 5', '--5', '\0']) {
    t.throws(() => parseMillidegrees(text), JSON.stringify(text));
  }
});

t.test('values that drivers return for "not there" are implausible', async (t) => {
  for (const celsius of [-273, -256, -40, 150, 255, 65261.85, Number.NaN]) t.equal(isPossibleCelsius(celsius), false, `${celsius}`);
  for (const celsius of [-39, -5, 0, 20, 105, 149]) t.equal(isPossibleCelsius(celsius), true, `${celsius}`);
});

for (const name of fixtureNames()) {
  t.test(`${name}: reading its unreadable files fails with their error`, async (t) => {
    const { root, unreadable } = materialiseFixture(t, name);
    for (const { path, error } of unreadable) {
      await t.rejects(new OccasionalReader().read(join(root, path)), { code: error === 'EAGAIN' ? 'EAGAIN' : 'EISDIR' }, path);
    }
  });

  t.test(`${name}: the sensor of its processor is chosen, and every other is rejected for a reason`, async (t) => {
    const { sysRoot, expect, unreadable } = materialiseFixture(t, name);
    const candidates = await findSensors(sysRoot);
    const { chosen, reason, rejected } = chooseSensor(candidates, null);
    t.equal(chosen?.id ?? null, expect.sensor);
    t.equal(chosen?.path ?? null, expect.source && pathOfSource(sysRoot, expect.source));
    t.equal(chosen && toHundredths(chosen.celsius as number), expect.temperatureCelsius);
    t.not(reason, '');
    const shown = globSync(['class/thermal/thermal_zone*/temp', 'class/hwmon/hwmon*/temp*_input'], { cwd: sysRoot });
    t.same([...rejected.map(({ path }) => path), ...(chosen ? [chosen.path] : [])].sort(), shown.map((path) => join(sysRoot, path)).sort());
    for (const { id, reason: why } of rejected) t.match(why, /\S/, id);
    const failing = rejected.filter(({ celsius }) => celsius === null);
    t.same(
      failing.map(({ path }) => path).sort(),
      unreadable
        .filter(({ path }) => /thermal_zone|hwmon/.test(path))
        .map(({ path }) => join(sysRoot, '..', path))
        .sort(),
    );
    for (const { reason: why } of failing) t.match(why, /^(EAGAIN|EISDIR): /);
  });

  t.test(`${name}: each of its sensors can be configured`, async (t) => {
    const { sysRoot } = materialiseFixture(t, name);
    const candidates = await findSensors(sysRoot);
    for (const { id } of candidates) {
      const { chosen, reason, rejected } = chooseSensor(candidates, id);
      t.equal(chosen?.id, id);
      t.match(reason, /configured/);
      t.equal(rejected.length, candidates.length - 1);
    }
    const { chosen, reason, rejected } = chooseSensor(candidates, 'motor/left');
    t.equal(chosen, null, 'one that is not there is not replaced');
    t.match(reason, /"motor\/left"/);
    for (const { id } of candidates) t.ok(reason.includes(id), `${id} is offered`);
    t.equal(rejected.length, candidates.length);
  });
}

t.test('an older Jetson: its CPU zone, not the constant 100 °C of PMIC-Die', async (t) => {
  const sysRoot = temporaryFolder(t);
  const zones = [
    ['AO-therm', 45500],
    ['CPU-therm', 38500],
    ['GPU-therm', 37000],
    ['PLL-therm', 37500],
    ['PMIC-Die', 100000],
    ['thermal-fan-est', 37750],
  ] as const;
  writeTree(sysRoot, zoneFiles(zones));
  const { chosen, rejected } = chooseSensor(await findSensors(sysRoot), null);
  t.match(chosen, { id: 'CPU-therm', celsius: 38.5 });
  t.equal(rejected.length, 5);
});

t.test('a Jetson TX2, whose processors are BCPU and MCPU', async (t) => {
  const sysRoot = temporaryFolder(t);
  const zones = [
    ['BCPU-therm', 36500],
    ['MCPU-therm', 36500],
    ['GPU-therm', 34500],
    ['PLL-therm', 36500],
    ['AO-therm', 35000],
    ['Tboard_tegra', 32000],
    ['Tdiode_tegra', 33250],
    ['PMIC-Die', 100000],
    ['thermal-fan-est', 35900],
  ] as const;
  writeTree(sysRoot, zoneFiles(zones));
  t.match(chooseSensor(await findSensors(sysRoot), null).chosen, { id: 'BCPU-therm', celsius: 36.5 });
});

t.test('PMIC-Die is not the hottest of an unknown Jetson either', async (t) => {
  const { chosen } = chooseSensor([zone('Tboard_tegra', 32), zone('PMIC-Die', 100), zone('GPU-therm', 34.5)], null);
  t.equal(chosen?.id, 'GPU-therm');
});

t.test('known sensors come before hotter ones, whatever the order they are found in', async (t) => {
  const others = [zone('pch_cannonlake', 80), candidate('nvme/Composite', 85)];
  for (const id of [
    'cpu-thermal',
    'cpu_thermal',
    'CPU-therm',
    'coretemp/Package id 0',
    'k10temp/Tctl',
    'zenpower/Tdie',
    'x86_pkg_temp',
    'soc-thermal',
    'soc_thermal',
    'cpu0-thermal',
  ]) {
    const known = candidate(id, 40);
    t.equal(chooseSensor([known, ...others], null).chosen, known, id);
    t.equal(chooseSensor([...others, known], null).chosen, known, id);
  }
});

t.test('of two known sensors the preferred one is chosen, unless it returns nothing', async (t) => {
  const zoneOfPackage = zone('x86_pkg_temp', 70);
  t.equal(chooseSensor([zoneOfPackage, candidate('coretemp/Package id 0', 60)], null).chosen?.id, 'coretemp/Package id 0');
  t.equal(chooseSensor([zoneOfPackage, candidate('coretemp/Package id 0', null)], null).chosen, zoneOfPackage);
  t.equal(chooseSensor([zoneOfPackage, candidate('coretemp/Package id 0', -256)], null).chosen, zoneOfPackage);
});

t.test('without a known sensor, the hottest plausible zone is chosen, before anything hotter in hwmon', async (t) => {
  const candidates = [
    zone('board-thermal', 41),
    zone('stuck', 0),
    zone('unconnected', 127),
    zone('top-thermal', 55),
    zone('dead', null),
    zone('acpitz', 16.8),
    candidate('nvme/Composite', 80),
  ];
  const { chosen, reason, rejected } = chooseSensor(candidates, null);
  t.equal(chosen?.id, 'top-thermal');
  t.match(reason, /hottest/);
  t.equal(rejected.length, 6);
  t.match(rejected.find(({ id }) => id === 'dead')?.reason, /EAGAIN/);
});

t.test('without a plausible zone, the hottest plausible sensor of hwmon is chosen', async (t) => {
  const candidates = [zone('stuck', 0), candidate('nct6775/SYSTIN', 35), candidate('nct6775/CPUTIN', 47), candidate('nct6775/AUXTIN', 127)];
  t.equal(chooseSensor(candidates, null).chosen?.id, 'nct6775/CPUTIN');
});

t.test('no sensor is chosen if nothing is plausible or nothing exists', async (t) => {
  const { chosen, reason, rejected } = chooseSensor([zone('stuck', 0), zone('dead', null)], null);
  t.equal(chosen, null);
  t.match(reason, /plausible/);
  t.same(
    rejected.map((each) => each.reason),
    ['not plausible', 'EAGAIN: not now'],
  );
  t.match(chooseSensor([], null), { chosen: null, reason: /no temperature sensor/, rejected: [] });
  t.same(await findSensors(join(temporaryFolder(t), 'missing')), []);
});

t.test('a configured sensor is kept while it returns nothing', async (t) => {
  const dead = candidate('nvme/Composite', null);
  t.equal(chooseSensor([zone('cpu-thermal', 50), dead], 'nvme/Composite').chosen, dead);
});

t.test('of several sensors with the configured name, the first one that returns a value is chosen', async (t) => {
  const answering = candidate('acpitz', 27.8, '/sys/class/thermal/thermal_zone1/temp');
  const impossible = { ...candidate('acpitz', -263.2, '/sys/class/thermal/thermal_zone0/temp'), problem: '-263.2 °C is not possible' };
  t.equal(chooseSensor([impossible, answering], 'acpitz').chosen, answering);
  t.equal(chooseSensor([impossible], 'acpitz').chosen, impossible);
});

t.test('names in hwmon: the label, otherwise the file; the driver, otherwise the folder', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeTree(sysRoot, {
    'class/hwmon/hwmon10/name': 'late\n',
    'class/hwmon/hwmon10/temp1_input': '30000\n',
    'class/hwmon/hwmon2/name': 'chip\n',
    'class/hwmon/hwmon2/temp10_input': '31000\n',
    'class/hwmon/hwmon2/temp2_input': '32000\n',
    'class/hwmon/hwmon2/temp2_label': 'Tdie one\n',
    'class/hwmon/hwmon2/temp2_max': '99000\n',
    'class/hwmon/hwmon2/in0_input': '12000\n',
    'class/hwmon/hwmon3/temp1_input': '33000\n',
    'class/hwmon/hwmon4/name': 'fan\n',
    'class/thermal/thermal_zone0/temp': '34000\n',
    'class/thermal/cooling_device0/type': 'Fan\n',
  });
  const found = await findSensors(sysRoot);
  t.same(
    found.map(({ id, celsius }) => [id, celsius]),
    [
      ['thermal_zone0', 34],
      ['chip/Tdie one', 32],
      ['chip/temp10', 31],
      ['hwmon3/temp1', 33],
      ['late/temp1', 30],
    ],
  );
});

t.test('empty, garbled and failing sensors are candidates with a problem, and do not affect the others', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeTree(sysRoot, {
    ...zoneFiles([
      ['empty', 0],
      ['garbled', 0],
      ['failing', 0],
      ['frozen', -256000],
      ['board', 44000],
    ]),
    'class/thermal/thermal_zone0/temp': '',
    'class/thermal/thermal_zone1/temp': 'N/A\n',
  });
  makeUnreadable(t, join(sysRoot, 'class/thermal/thermal_zone2/temp'), 'EAGAIN');
  const found = await findSensors(sysRoot);
  t.match(found, [
    { id: 'empty', celsius: null, problem: 'empty' },
    { id: 'garbled', celsius: null, problem: '"N/A" is not a number' },
    { id: 'failing', celsius: null, problem: /^EAGAIN: / },
    { id: 'frozen', celsius: -256, problem: /not possible/ },
    { id: 'board', celsius: 44, problem: null },
  ]);
  t.equal(chooseSensor(found, null).chosen?.id, 'board');
});

t.test('a driver that moved to another hwmon number keeps its name', async (t) => {
  const before = temporaryFolder(t);
  const after = temporaryFolder(t);
  const machine = (root: string, coretemp: number, nvme: number): void =>
    writeTree(root, {
      [`class/hwmon/hwmon${coretemp}/name`]: 'coretemp\n',
      [`class/hwmon/hwmon${coretemp}/temp1_input`]: '50000\n',
      [`class/hwmon/hwmon${coretemp}/temp1_label`]: 'Package id 0\n',
      [`class/hwmon/hwmon${nvme}/name`]: 'nvme\n',
      [`class/hwmon/hwmon${nvme}/temp1_input`]: '60000\n',
      [`class/hwmon/hwmon${nvme}/temp1_label`]: 'Composite\n',
    });
  machine(before, 0, 1);
  machine(after, 1, 0);
  const [first, second] = [chooseSensor(await findSensors(before), null), chooseSensor(await findSensors(after), null)];
  t.match(first.chosen, { id: 'coretemp/Package id 0', path: `${before}/class/hwmon/hwmon0/temp1_input`, celsius: 50 });
  t.match(second.chosen, { id: 'coretemp/Package id 0', path: `${after}/class/hwmon/hwmon1/temp1_input`, celsius: 50 });
});
