import t from 'tap';
import { CpuSource } from '../../src/collect/cpu.ts';
import { MemorySource } from '../../src/collect/memory.ts';
import type { Source } from '../../src/collect/source.ts';
import { TemperatureSource } from '../../src/collect/temperature.ts';
import { MachineTree } from './machine-tree.ts';

function read(source: Source): Promise<number | string> {
  return new Promise((resolve) => source.read((error, value) => resolve(error ? error.message : Math.round(value * 100) / 100)));
}

t.test('any two readings of the load give the configured percentage, however far apart', async (t) => {
  const tree = new MachineTree(t, 'pi5');
  let seconds = 0;
  const cpu = new CpuSource(tree.procRoot, () => seconds);
  t.teardown(() => cpu.close());
  t.equal(await read(cpu), 'first reading of a pair');
  for (const percent of [11.25, 92.5, 92.5, 0, 100, 37.15]) {
    tree.setCpuPercent(percent);
    // Fewer than the 256 records of a full pipe, so that no refill is needed.
    for (let reading = 0; reading < 100; reading += 1) {
      seconds += [0.25, 1, 3600][reading % 3] as number;
      t.equal(await read(cpu), percent);
    }
  }
});

t.test('the load is the recorded one until it is set', async (t) => {
  const tree = new MachineTree(t, 'pi5');
  let seconds = 0;
  const cpu = new CpuSource(tree.procRoot, () => (seconds += 1));
  t.teardown(() => cpu.close());
  await read(cpu);
  t.equal(await read(cpu), 11.25);
});

for (const machine of ['pi5', 'intel-nuc']) {
  t.test(`${machine}: memory and the temperature of the chosen sensor can be set`, async (t) => {
    const tree = new MachineTree(t, machine);
    const memory = new MemorySource(tree.procRoot);
    const temperature = new TemperatureSource(
      tree.sysRoot,
      null,
      () => 0,
      () => {},
    );
    t.teardown(() => [memory, temperature].map((source) => source.close()));
    await temperature.search();
    tree.setMemoryPercent(91.5);
    tree.setTemperature(88.25);
    t.equal(await read(memory), 91.5);
    t.equal(await read(temperature), 88.25);
    tree.removeSensor();
    t.match(await read(temperature), /ENOENT|gone|another/);
  });
}

t.test('a machine without a sensor, and a percentage out of range, are refused', async (t) => {
  const tree = new MachineTree(t, 'vm-no-sensors');
  t.throws(() => tree.setTemperature(50), /no temperature sensor/);
  t.throws(() => tree.setCpuPercent(101), RangeError);
});
