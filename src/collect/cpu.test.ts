import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, materialiseFixture } from '../../testkit/machine/machines.ts';
import { toHundredths } from '../core/metrics.ts';
import { CpuSource, type CpuTicks, cpuPercent, parseCpuTicks } from './cpu.ts';
import type { Source } from './source.ts';

interface Answer {
  readonly problem: string | null;
  readonly value: number;
}

function ask(source: Source): Promise<Answer> {
  return new Promise((resolve) => source.read((error, value) => resolve({ problem: error?.message ?? null, value: toHundredths(value) })));
}

/** A /proc whose stat and time are set by the test. */
class Machine {
  nowSeconds = 5000;
  readonly procRoot: string;
  readonly source: CpuSource;

  constructor(procRoot: string) {
    this.procRoot = procRoot;
    this.source = new CpuSource(procRoot, () => this.nowSeconds);
  }

  /** Advances the busy and idle ticks since boot, then takes a reading. */
  async read(busy: number, idle: number): Promise<Answer> {
    const next = join(this.procRoot, 'stat.next');
    writeFileSync(next, `cpu  ${busy} 0 0 ${idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n`);
    renameSync(next, join(this.procRoot, 'stat'));
    return ask(this.source);
  }
}

t.test('the aggregate line is summed, and idle is idle + iowait', async (t) => {
  t.same(parseCpuTicks('cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 2 3 4\n'), { idle: 4500, total: 4743 });
});

t.test('guest time is inside user and nice, and not counted twice', async (t) => {
  const alone = parseCpuTicks('cpu  100 20 30 4000 500 6 7 8 0 0\n');
  t.same(parseCpuTicks('cpu  100 20 30 4000 500 6 7 8 90 15\n'), alone);
});

t.test('old kernels have fewer counters, newer ones may have more', async (t) => {
  t.same(parseCpuTicks('cpu 1 2 3 4\n'), { idle: 4, total: 10 });
  t.same(parseCpuTicks('cpu 1 2 3 4 5 6 7\n'), { idle: 9, total: 28 });
  t.same(parseCpuTicks('cpu 1 2 3 4 5 6 7 8 9 10 11 12\n'), { idle: 9, total: 36 });
  t.same(parseCpuTicks('cpu 1 2 3 4'), { idle: 4, total: 10 }, 'without a line end');
});

t.test('a line other than the aggregate line is refused', async (t) => {
  const garbage = [
    '',
    '\n',
    'cpu\n',
    'cpu  1 2 3\n',
    'cpu  1 2 3 \n',
    'cpu0 1 2 3 4\n',
    'intr 1 2 3 4\n',
    '\ncpu  1 2 3 4\n',
    'cpu  1 2 3 -4\n',
    'cpu  1 2 3 4.5\n',
    'cpu  1 2 3 0x10\n',
    'cpu  1 2 3 1e3\n',
    'cpu  1 2 three 4\n',
    'cpu  1 2 3 99999999999999999999\n',
    '\0\0\0\0',
  ];
  for (const text of garbage) t.throws(() => parseCpuTicks(text), { name: 'ImplausibleReading' }, JSON.stringify(text));
});

t.test('returns the share of time that was not idle', async (t) => {
  const before: CpuTicks = { idle: 1000, total: 2000 };
  t.equal(cpuPercent(before, { idle: 1100, total: 2100 }), 0);
  t.equal(cpuPercent(before, { idle: 1000, total: 2100 }), 100);
  t.equal(cpuPercent(before, { idle: 1075, total: 2100 }), 25);
});

t.test('steal is busy, iowait is idle', async (t) => {
  const before = parseCpuTicks('cpu 0 0 0 100 10 0 0 5\n');
  t.equal(cpuPercent(before, parseCpuTicks('cpu 0 0 0 150 10 0 0 55\n')), 50);
  t.equal(cpuPercent(before, parseCpuTicks('cpu 0 0 0 150 60 0 0 5\n')), 0);
});

t.test('there is no percentage if no tick passed or a counter went backwards', async (t) => {
  const before: CpuTicks = { idle: 1000, total: 2000 };
  t.equal(cpuPercent(before, before), null);
  t.equal(cpuPercent(before, { idle: 900, total: 2000 }), null, 'idle went backwards');
  t.equal(cpuPercent(before, { idle: 900, total: 1900 }), null, 'all went backwards');
  t.equal(cpuPercent(before, { idle: 1200, total: 2050 }), null, 'a busy counter went backwards');
});

t.test('a counter that falls by a few ticks is not a lost reading', async (t) => {
  const before = parseCpuTicks('cpu 1000 50 500 1000 500 20 20 30\n');
  const after = (line: string): number | null => cpuPercent(before, parseCpuTicks(`cpu ${line}\n`));
  t.equal(after('999 50 500 1200 500 20 20 30'), 0, 'user');
  t.equal(after('1000 50 500 1200 500 19 18 30'), 0, 'irq and softirq');
  t.equal(after('1000 50 500 1200 500 20 20 29'), 0, 'steal');
  t.equal(after('1100 50 500 1120 480 20 20 30'), 50, 'iowait, and idle gets its ticks');
  t.equal(after('1200 50 500 1040 450 20 20 30'), 100, 'iowait more than idle gains');
  t.equal(after('1200 50 500 990 500 20 20 30'), 100, 'idle');
  t.equal(after('1100 50 500 1000 0 20 20 30'), null, 'a core went offline');
});

t.test('the first reading has no value, the second one has', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  t.match(await machine.read(1000, 1000), { problem: /first reading/ });
  machine.nowSeconds += 1;
  t.same(await machine.read(1030, 1070), { problem: null, value: 30 });
});

t.test('at 1 Hz each reading is compared with the one before it', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  await machine.read(0, 0);
  const values: number[] = [];
  let [busy, idle] = [0, 0];
  for (const percent of [10, 90, 0, 100, 50]) {
    machine.nowSeconds += 1;
    busy += percent;
    idle += 100 - percent;
    values.push((await machine.read(busy, idle)).value);
  }
  t.same(values, [10, 90, 0, 100, 50]);
});

t.test('at 4 Hz too, even if timers fire slightly early or late', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  await machine.read(0, 0);
  const values: number[] = [];
  let [busy, idle] = [0, 0];
  for (const [index, percent] of [20, 80, 0, 100].entries()) {
    machine.nowSeconds += 0.25 + (index % 2 === 0 ? -0.004 : 0.004);
    busy += percent;
    idle += 100 - percent;
    values.push((await machine.read(busy, idle)).value);
  }
  t.same(values, [20, 80, 0, 100]);
});

t.test('at 1000 Hz the pair spans a quarter of a second, so that one tick is not the whole load', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  let [busy, idle] = [0, 0];
  const values: number[] = [];
  // One processor, a tick every 10 ms, every fifth of them busy.
  for (let millisecond = 0; millisecond < 1000; millisecond += 1) {
    if (millisecond % 50 === 49) busy += 1;
    else if (millisecond % 10 === 9) idle += 1;
    const { problem, value } = await machine.read(busy, idle);
    if (problem === null && millisecond >= 300) values.push(value);
    machine.nowSeconds += 0.001;
  }
  t.equal(values.length, 700, 'every reading has a value once the window is full');
  // 24 or 25 ticks lie in the window, four to six of them busy.
  t.ok(Math.min(...values) >= 100 * (4 / 25) - 0.01, `at least 16 %, was ${Math.min(...values)}`);
  t.ok(Math.max(...values) <= 100 * (6 / 24) + 0.01, `at most 25 %, was ${Math.max(...values)}`);
});

t.test('at 1000 Hz a change of load is fully visible a quarter of a second later', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  let [busy, idle] = [0, 0];
  let fullSince = Number.NaN;
  for (let millisecond = 0; millisecond < 1000; millisecond += 1) {
    if (millisecond % 10 === 9) {
      if (millisecond < 500) idle += 1;
      else busy += 1;
    }
    const { problem, value } = await machine.read(busy, idle);
    if (millisecond === 499) t.same({ problem, value }, { problem: null, value: 0 });
    if (value === 100 && Number.isNaN(fullSince)) fullSince = millisecond;
    machine.nowSeconds += 0.001;
  }
  t.ok(fullSince > 700 && fullSince <= 780, `full load seen at ${fullSince} ms`);
});

t.test('between two ticks there is no value, and the pair waits for the next tick', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  await machine.read(10, 10);
  machine.nowSeconds += 0.001;
  t.match(await machine.read(10, 10), { problem: /no tick/ });
  machine.nowSeconds += 0.009;
  t.same(await machine.read(11, 11), { problem: null, value: 50 });
});

t.test('a counter that goes backwards starts the pair over', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  await machine.read(1000, 1000);
  machine.nowSeconds += 1;
  t.match(await machine.read(1200, 900), { problem: /backwards/ }, 'idle alone');
  machine.nowSeconds += 1;
  t.same(await machine.read(1225, 975), { problem: null, value: 25 }, 'compared with the reading after the jump');
  machine.nowSeconds += 1;
  t.match(await machine.read(5, 5), { problem: /backwards/ }, 'all of them');
  machine.nowSeconds += 1;
  t.same(await machine.read(80, 30), { problem: null, value: 75 });
});

t.test('at 1000 Hz it starts over at once, not when the window has passed', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  for (let millisecond = 0; millisecond < 300; millisecond += 10) {
    await machine.read(1000 + millisecond, 1000 + millisecond);
    machine.nowSeconds += 0.01;
  }
  t.match(await machine.read(10, 10), { problem: /backwards/ });
  machine.nowSeconds += 0.01;
  t.same(await machine.read(13, 11), { problem: null, value: 75 });
});

t.test('an unreadable stat is an error, and the next reading has its pair again', async (t) => {
  const machine = new Machine(temporaryFolder(t));
  t.match(await ask(machine.source), { problem: /ENOENT/ });
  await machine.read(0, 0);
  writeFileSync(join(machine.procRoot, 'stat'), 'garbage\n');
  t.match(await ask(machine.source), { problem: /no aggregate/ });
  writeFileSync(join(machine.procRoot, 'stat'), '');
  t.match(await ask(machine.source), { problem: /no aggregate/ });
  machine.nowSeconds += 1;
  t.same(await machine.read(60, 40), { problem: null, value: 60 });
});

t.test('reads the real /proc/stat of this machine', async (t) => {
  const now = (): number => performance.now() / 1000;
  const source = new CpuSource('/proc', now);
  t.teardown(() => source.close());
  await ask(source);
  let { problem, value } = await ask(source);
  // A tick passes, and this processor is busy. The counter of iowait may go backwards.
  while (problem !== null && /no tick|went backwards/.test(problem)) ({ problem, value } = await ask(source));
  t.equal(problem, null);
  t.ok(value >= 0 && value <= 100, `${value} %`);
});

t.test('an exception in the callback is not mistaken for a failed reading', async (t) => {
  const source = new CpuSource('/proc', () => performance.now() / 1000);
  t.teardown(() => source.close());
  await ask(source); // From here on /proc is read synchronously.
  let answers = 0;
  const take = (): void => {
    answers += 1;
    throw new Error('cannot take it');
  };
  t.throws(() => source.read(take), { message: 'cannot take it' });
  t.equal(answers, 1);
});

for (const name of fixtureNames()) {
  t.test(`${name}: the load between its two readings`, async (t) => {
    const { procRoot, expect } = materialiseFixture(t, name);
    const before = readFileSync(join(procRoot, 'stat'), 'utf8');
    const after = readFileSync(join(procRoot, 'stat.later'), 'utf8');
    const percent = cpuPercent(parseCpuTicks(before), parseCpuTicks(after));
    t.equal(percent === null ? null : toHundredths(percent), expect.cpuPercent);
    t.equal(before.match(/^cpu\d+ /gm)?.length, expect.cpus);
  });
}
