import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, materialiseFixture } from '../../testkit/machine/machines.ts';
import { toHundredths } from '../core/metrics.ts';
import { MemorySource, parseMemoryPercent } from './memory.ts';

function ask(source: MemorySource): Promise<{ problem: string | null; value: number }> {
  return new Promise((resolve) => source.read((error, value) => resolve({ problem: error?.message ?? null, value })));
}

/** The first lines of meminfo as the kernel writes them. */
function meminfo(total: number, available: number): string {
  const line = (key: string, kibibytes: number): string => `${`${key}:`.padEnd(16)}${String(kibibytes).padStart(8)} kB\n`;
  return line('MemTotal', total) + line('MemFree', 1) + line('MemAvailable', available) + line('Buffers', 7);
}

t.test('memory that is not available is in use', async (t) => {
  t.equal(parseMemoryPercent(meminfo(1000, 1000)), 0);
  t.equal(parseMemoryPercent(meminfo(1000, 750)), 25);
  t.equal(parseMemoryPercent(meminfo(1000, 0)), 100);
  t.equal(parseMemoryPercent(meminfo(2 ** 40, 2 ** 39)), 50, 'a pebibyte');
});

t.test('impossible values are refused', async (t) => {
  const garbage = [
    '',
    'garbage',
    meminfo(1000, 1001),
    meminfo(0, 0),
    meminfo(-5, 1),
    meminfo(1000, -1),
    'MemTotal:  1000 kB\n',
    'MemTotal:  1000 kB\nMemFree:  10 kB\n',
    'MemAvailable:  1000 kB\n',
    'MemTotal:  many kB\nMemAvailable:  10 kB\n',
    'MemTotal:  1000 kB\nMemAvailable:  \n',
    'MemTotal:  1000 MB\nMemAvailable:  10 kB\n',
  ];
  for (const text of garbage) t.throws(() => parseMemoryPercent(text), { name: 'ImplausibleReading' }, JSON.stringify(text));
});

t.test('a missing, empty or garbled meminfo is an error, and a valid one is read afterwards', async (t) => {
  const procRoot = temporaryFolder(t);
  const path = join(procRoot, 'meminfo');
  const source = new MemorySource(procRoot);
  t.match(await ask(source), { problem: /ENOENT/ });
  writeFileSync(path, meminfo(400, 100));
  t.same(await ask(source), { problem: null, value: 75 });
  writeFileSync(path, '');
  t.match(await ask(source), { problem: /MemTotal/ });
  writeFileSync(path, 'MemTotal: 400 kB\n');
  t.match(await ask(source), { problem: /MemAvailable/ });
  rmSync(path);
  t.match(await ask(source), { problem: /ENOENT/ });
  writeFileSync(path, meminfo(400, 300));
  t.same(await ask(source), { problem: null, value: 25 });
});

t.test('reads the real /proc/meminfo repeatedly', async (t) => {
  const source = new MemorySource('/proc');
  t.teardown(() => source.close());
  const differences: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    const { problem, value } = await ask(source);
    t.equal(problem, null);
    differences.push(Math.abs(value - parseMemoryPercent(readFileSync('/proc/meminfo', 'utf8'))));
  }
  t.ok(Math.min(...differences) < 1, `the differences to another reading are ${differences}`);
});

t.test('an exception in the callback is not mistaken for a failed reading', async (t) => {
  const source = new MemorySource('/proc');
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
  t.test(`${name}: memory in use`, async (t) => {
    const { procRoot, expect } = materialiseFixture(t, name);
    const { problem, value } = await ask(new MemorySource(procRoot));
    t.equal(problem, null);
    t.equal(toHundredths(value), expect.memoryPercent);
  });
}
