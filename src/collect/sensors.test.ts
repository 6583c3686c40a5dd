import { globSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, makeUnreadable, materialiseFixture, writeTree } from '../../testkit/machine/machines.ts';
import { toHundredths } from '../core/metrics.ts';
import { chooseSensor, findSensors, isPossibleCelsius, parseValue, type SensorCandidate } from './sensors.ts';
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
  const problem = celsius === null ? 'EAGAIN: not now' : null;
  return { id, name: id, address: null, path, celsius, problem, unitsPerDegree: celsius === null ? null : 1000 };
}

function zone(id: string, celsius: number | null): SensorCandidate {
  return candidate(id, celsius, `/sys/class/thermal/${id}/temp`);
}

t.test('a value is a whole number', async (t) => {
  t.equal(parseValue('61348\n'), 61348);
  t.equal(parseValue('-263200\n'), -263200);
  t.equal(parseValue('0'), 0);
  for (const text of ['', '\n', 'N/A', '12.5', '0x20', '45000 mC', '4 5', '--5', '\0']) {
    t.throws(() => parseValue(text), JSON.stringify(text));
  }
});

t.test('values that drivers return for "not there" are implausible', async (t) => {
  for (const celsius of [-273, -256, -40, 127, 127.5, 150, 255, 65261.85, Number.NaN])
    t.equal(isPossibleCelsius(celsius), false, `${celsius}`);
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

/**
 * Machines of which only the sensors matter: what the service must select, its temperature, and all sensors in the order of their numbers
 * (`zone value` or `hwmon/label value`). The names are those of the kernel's drivers and device trees, and of what users published.
 */
const MACHINES: Readonly<Record<string, readonly [expected: string, celsius: number, ...sensors: string[]]>> = {
  'Raspberry Pi, kernel 4.x': ['bcm2835_thermal', 48.3, 'bcm2835_thermal 48312', 'w1_slave_temp/temp1 88000'],
  'Raspberry Pi whose zones are hidden': [
    'cpu_thermal/temp1',
    51.1,
    'cpu_thermal/temp1 51121',
    'rp1_adc/temp1 61000',
    'nvme/Composite 70850',
  ],
  'Jetson Nano': [
    'CPU-therm',
    38.5,
    ...['AO-therm 45500', 'CPU-therm 38500', 'GPU-therm 37000', 'PLL-therm 37500', 'PMIC-Die 100000', 'thermal-fan-est 57750'],
  ],
  'Jetson TX2': [
    'BCPU-therm',
    36.5,
    ...['BCPU-therm 36500', 'MCPU-therm 36500', 'GPU-therm 34500', 'PLL-therm 36500', 'AO-therm 35000', 'Tboard_tegra 32000'],
    ...['Tdiode_tegra 33250', 'PMIC-Die 100000', 'thermal-fan-est 35900'],
  ],
  'RK3588, mainline': [
    'package-thermal',
    71,
    ...['package-thermal 71000', 'bigcore0-thermal 78000', 'bigcore2-thermal 74000', 'littlecore-thermal 70000', 'center-thermal 69000'],
    ...['gpu-thermal 90000', 'npu-thermal 68000', 'package_thermal/temp1 71000', 'bigcore0_thermal/temp1 78000', 'nvme/Composite 80000'],
  ],
  'RK3588, kernel of the vendor': [
    'soc-thermal',
    44.3,
    'soc-thermal 44300',
    'bigcore0-thermal 45300',
    'gpu-thermal 62500',
    'test_battery 2600',
  ],
  'RK3588 without a zone of the whole chip': [
    'bigcore0-thermal',
    61,
    'littlecore-thermal 63000',
    'bigcore1-thermal 62000',
    'bigcore0-thermal 61000',
    'npu-thermal 70000',
  ],
  RK3399: ['cpu-thermal', 55, 'cpu-thermal 55000', 'gpu-thermal 60000', 'cpu_thermal/temp1 55000', 'gpu_thermal/temp1 60000'],
  'RK3399, kernel of the vendor': ['soc-thermal', 55.6, 'gpu-thermal 60000', 'soc-thermal 55555'],
  'Allwinner H6': ['cpu-thermal', 50, 'cpu-thermal 50000', 'gpu-thermal 61000', 'axp20x_battery/temp1 70000'],
  'Allwinner A64, kernel of the vendor, whole degrees': ['cpu_thermal_zone', 65, 'cpu_thermal_zone 65', 'gpu_thermal_zone 67'],
  'Amlogic S905, firmware sensors': ['scpi_sensors/aml_thermal', 52, 'scpi_sensors/aml_thermal 52000', 'nvme/Composite 60000'],
  'Qualcomm RB5': [
    'cpu7-top-thermal',
    66,
    ...[
      'aoss0-thermal 50000',
      'cpu0-thermal 51000',
      'cpu4-top-thermal 61000',
      'cpu7-top-thermal 66000',
      'gpu-top-thermal 70000',
      'pm8150-thermal 37000',
    ],
  ],
  'i.MX6': ['imx_thermal_zone', 44.9, 'imx_thermal_zone 44900'],
  'i.MX8QM, two clusters': ['cpu-thermal1', 47, 'cpu-thermal0 44000', 'cpu-thermal1 47000', 'gpu-thermal0 58000', 'drc-thermal0 60000'],
  'Odroid XU4': [
    'cpu2-thermal',
    71,
    'cpu0-thermal 66000',
    'cpu1-thermal 68000',
    'cpu2-thermal 71000',
    'cpu3-thermal 69000',
    'gpu-thermal 72000',
  ],
  'Texas Instruments AM62': ['main0-thermal', 49, 'main0-thermal 49000', 'main1-thermal 49500'],
  'Intel with two sockets': [
    'coretemp/Package id 0',
    50,
    'coretemp/Package id 1 58000',
    'coretemp/Core 0 57000',
    'coretemp/Package id 0 50000',
    'pch_lewisburg 66000',
  ],
  'Intel, kernel 3.x': ['coretemp/Physical id 0', 63, 'acpitz 65000', 'coretemp/Core 0 63500', 'coretemp/Physical id 0 63000'],
  'Intel without the driver coretemp': [
    'x86_pkg_temp',
    60,
    'acpitz 70000',
    'INT3400 Thermal 20000',
    'TCPU 61000',
    'x86_pkg_temp 60000',
    'iwlwifi_1 72000',
  ],
  'Intel Atom, cores only': [
    'coretemp/Core 1',
    92,
    'acpitz 26800',
    'soc_dts0 55000',
    'coretemp/Core 0 91000',
    'coretemp/Core 1 92000',
    'coretemp/Core 2 90000',
  ],
  'VIA Nano': ['via_cputemp/Core 0', 61, 'acpitz 70000', 'via_cputemp/Core 0 61000'],
  'AMD before Zen': ['k10temp/temp1', 88.5, 'acpitz 27800', 'acpitz/temp1 27800', 'k10temp/temp1 88500'],
  'AMD before Zen, with a radio': ['k10temp/temp1', 52, 'acpitz 27800', 'iwlwifi_1 71000', 'iwlwifi_1/temp1 71000', 'k10temp/temp1 52000'],
  'AMD K8': ['k8temp/temp1', 41, 'k8temp/temp1 41000', 'k8temp/temp3 43000', 'it87/temp1 55000'],
  'Threadripper 1950X, whose Tctl is 27 °C too high': [
    'k10temp/Tdie',
    48,
    'k10temp/Tctl 75000',
    'k10temp/Tdie 48000',
    'k10temp/Tccd1 76000',
  ],
  'Ryzen with zenpower': ['zenpower/Tdie', 55, 'nvme/Composite 60000', 'zenpower/Tctl 65000', 'zenpower/Tdie 55000', 'amdgpu/edge 75000'],
  'Ryzen with asus-ec-sensors': ['k10temp/Tctl', 44, 'asusec/CPU 52000', 'asusec/VRM 63000', 'k10temp/Tctl 44000', 'k10temp/Tccd1 58000'],
  'a board chip only': [
    'nct6775/PECI Agent 0',
    54,
    'nct6775/SYSTIN 35000',
    'nct6775/CPUTIN 66000',
    'nct6775/AUXTIN0 127500',
    'nct6775/PECI Agent 0 54000',
  ],
  'a board chip whose digital sensor is not connected': [
    'nct6775/CPUTIN',
    47,
    'nct6775/SYSTIN 55000',
    'nct6775/CPUTIN 47000',
    'nct6775/PECI Agent 0 0',
  ],
  'a board chip with voltage regulators': ['asusec/CPU', 47, 'asusec/CPU VRM 85000', 'asusec/CPU 47000', 'asusec/T_Sensor 60000'],
  'MacBook, applesmc': ['applesmc/TC0P', 47, 'applesmc/TB0T 55000', 'applesmc/TC0P 47000', 'applesmc/TM0P 52000'],
  'ThinkPad without another sensor': ['thinkpad/CPU', 46, 'thinkpad/CPU 46000', 'thinkpad/GPU 70000', 'BAT0/temp1 30000'],
  'a board zone and hotter devices': [
    'acpitz',
    45,
    'acpitz 45000',
    'iwlwifi_1 61000',
    'pch_cannonlake 72000',
    'nvme/Composite 80000',
    'BAT0/temp1 33000',
    'mt7921_phy0/temp1 60000',
  ],
  'a board chip without names and hotter devices': [
    'it87/temp1',
    44,
    'it87/temp1 44000',
    'it87/temp2 127000',
    'drivetemp/temp1 51000',
    'jc42/temp1 50000',
    'amdgpu/edge 70000',
  ],
  'two drives only': ['nvme/Composite@0000:01:00.0', 35, 'nvme/Composite@0000:01:00.0 35000', 'nvme/Composite@0000:02:00.0 82000'],
};

/** Writes the sensors as zones and hwmon of these numbers; a name with an address gets a device at this place on the bus. */
function writeSensors(root: string, sensors: readonly string[]): void {
  const folders = new Map<string, number>();
  for (const sensor of sensors) {
    const [, name = '', label, address, value] = /^([^/]+?)(?:\/(.+?))?(?:@(\S+))? (-?\d+)$/.exec(sensor) ?? [];
    const key = label === undefined ? sensor : `${name}@${address}`;
    const number = folders.get(key) ?? folders.size;
    const isNew = !folders.has(key);
    folders.set(key, number);
    if (label === undefined) {
      writeTree(root, {
        [`class/thermal/thermal_zone${number}/type`]: `${name}\n`,
        [`class/thermal/thermal_zone${number}/temp`]: `${value}\n`,
      });
      continue;
    }
    const folder = `class/hwmon/hwmon${number}`;
    const index = /^temp(\d+)$/.exec(label)?.[1] ?? globSync(`${folder}/temp*_input`, { cwd: root }).length + 1;
    writeTree(root, { [`${folder}/name`]: `${name}\n`, [`${folder}/temp${index}_input`]: `${value}\n` });
    if (!label.startsWith('temp')) writeTree(root, { [`${folder}/temp${index}_label`]: `${label}\n` });
    if (!isNew || address === undefined) continue;
    const device = join(root, `devices/pci0000:00/${address}/${name}/${name}${number}`);
    mkdirSync(device, { recursive: true });
    symlinkSync(device, join(root, folder, 'device'));
  }
}

for (const [machine, [expected, celsius, ...sensors]] of Object.entries(MACHINES)) {
  t.test(`${machine}: ${expected}, whatever its numbers are`, async (t) => {
    for (const order of [sensors, sensors.toReversed(), [...sensors.slice(1), ...sensors.slice(0, 1)]]) {
      const sysRoot = temporaryFolder(t);
      writeSensors(sysRoot, order);
      const { chosen, members } = chooseSensor(await findSensors(sysRoot), null);
      t.match(chosen, { id: expected });
      t.equal(Math.round((chosen?.celsius ?? 0) * 10) / 10, celsius);
      t.equal(
        members[0] && Math.max(...members.map((member) => member.celsius ?? 0)),
        chosen?.celsius,
        'the hottest of those that are read',
      );
    }
  });
}

t.test('of sensors with one name, each can be configured by the place of its device, on every start', async (t) => {
  for (const numbers of [
    ['nvme/Composite@0000:01:00.0 35000', 'nvme/Composite@0000:02:00.0 82000'],
    ['nvme/Composite@0000:02:00.0 82000', 'nvme/Composite@0000:01:00.0 35000'],
  ]) {
    const sysRoot = temporaryFolder(t);
    writeSensors(sysRoot, numbers);
    const candidates = await findSensors(sysRoot);
    t.match(chooseSensor(candidates, 'nvme/Composite@0000:02:00.0'), {
      chosen: { celsius: 82 },
      reason: 'configured as temperature.sensor',
    });
    t.match(chooseSensor(candidates, 'nvme/Composite@0000:01:00.0').chosen, { celsius: 35 });
    t.match(chooseSensor(candidates, 'nvme/Composite'), { chosen: { celsius: 35 }, reason: /2 sensors .*nvme\/Composite@0000:01:00\.0/ });
  }
  const sysRoot = temporaryFolder(t);
  writeSensors(sysRoot, ['nvme/Composite@0000:02:00.0 82000']);
  t.match(
    chooseSensor(await findSensors(sysRoot), 'nvme/Composite@0000:02:00.0').chosen,
    { celsius: 82 },
    'also when the other one is gone',
  );
});

t.test('without a place on a bus, the serial number or else the number of the folder distinguishes sensors of one name', async (t) => {
  const sysRoot = temporaryFolder(t);
  writeSensors(sysRoot, ['acpitz 30000', 'acpitz 45000']);
  t.same(
    (await findSensors(sysRoot)).map(({ id }) => id),
    ['acpitz@thermal_zone0', 'acpitz@thermal_zone1'],
  );
  writeTree(sysRoot, {
    'class/thermal/thermal_zone0/device/serial': 'S1\n',
    'class/thermal/thermal_zone1/device/serial': 'S2\n',
    'class/hwmon/hwmon0/name': 'chip\n',
    'class/hwmon/hwmon0/temp1_label': 'Sensor\n',
    'class/hwmon/hwmon0/temp1_input': '31000\n',
    'class/hwmon/hwmon0/temp2_label': 'Sensor\n',
    'class/hwmon/hwmon0/temp2_input': '32000\n',
  });
  t.same(
    (await findSensors(sysRoot)).map(({ id }) => id),
    ['acpitz@S1', 'acpitz@S2', 'chip/Sensor', 'chip/temp2'],
  );
});

t.test('whole degrees are recognized by the limits of the sensor, otherwise by the value', async (t) => {
  const celsius = async (value: number, limits: Record<string, string> = {}): Promise<number | null | undefined> => {
    const sysRoot = temporaryFolder(t);
    writeSensors(sysRoot, [`cpu-thermal ${value}`]);
    writeTree(join(sysRoot, 'class/thermal/thermal_zone0'), limits);
    return (await findSensors(sysRoot))[0]?.celsius;
  };
  t.equal(await celsius(65), 65);
  t.equal(await celsius(900), 0.9, 'a cold morning, not 900 °C');
  t.equal(await celsius(65, { trip_point_0_temp: '85000\n' }), 0.065);
  t.equal(await celsius(65, { trip_point_0_temp: '85\n', trip_point_1_temp: '105\n' }), 65);
  t.equal(await celsius(-5, { trip_point_0_temp: '85\n' }), -5);
  t.equal(await celsius(-5), -0.005);
  t.equal(await celsius(41000, { trip_point_0_temp: '0\n' }), 41);
});

t.test('PMIC-Die is not the hottest of an unknown Jetson either', async (t) => {
  const { chosen } = chooseSensor([zone('Tboard_tegra', 32), zone('PMIC-Die', 100), zone('GPU-therm', 34.5)], null);
  t.equal(chosen?.id, 'GPU-therm');
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
    rejected.map((each) => `${each.id}: ${each.reason}`),
    ['dead: EAGAIN: not now', 'stuck: not plausible'],
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
