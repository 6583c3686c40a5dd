import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Counters, hasChanged, type Memory, readMemory, writeMemory } from './memory.ts';

const remembered = (of: string, value: number): Memory => ({ counters: { restarts: { of, value } }, statuses: {} });

t.test('what has grown since the last check', async (t) => {
  t.equal(new Counters(null).grown('restarts', 'boot 1', 5), 0, 'nothing is known before the first check');
  t.equal(new Counters({ counters: {}, statuses: {} }).grown('restarts', 'boot 1', 5), 0, 'nor of what is new');
  t.equal(new Counters(remembered('boot 1', 3)).grown('restarts', 'boot 1', 5), 2);
  t.equal(new Counters(remembered('boot 1', 3)).grown('restarts', 'boot 1', 3), 0);
  t.equal(new Counters(remembered('boot 1', 3)).grown('restarts', 'boot 1', 1), 1, 'somebody set it back');
  t.equal(new Counters(remembered('boot 1', 3)).grown('restarts', 'boot 2', 4), 4, 'of another boot it began at 0');
});

t.test('over any number of checks no growth is told twice, and none is missed while the counter is not set back', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 1 }), (steps) => {
      let memory: Memory = remembered('x', 0);
      let value = 0;
      let told = 0;
      for (const step of steps) {
        value += step;
        const counters = new Counters(memory);
        told += counters.grown('restarts', 'x', value);
        memory = { counters: counters.now, statuses: {} };
      }
      return told === value;
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('what could not be asked this time is kept', async (t) => {
  const counters = new Counters(remembered('x', 7));
  counters.grown('other', 'y', 1);
  t.same(counters.now, { other: { of: 'y', value: 1 }, restarts: { of: 'x', value: 7 } });
});

t.test('names that every object has are names like others', async (t) => {
  t.equal(new Counters({ counters: {}, statuses: {} }).grown('constructor', 'x', 3), 0);
  t.equal(hasChanged({ counters: {}, statuses: {} }, 'constructor', 'OK'), false);
});

t.test('the file: written when something changed, and whatever is in it does no harm', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'ops/health_check.json');
  t.equal(await readMemory(folder), null);
  await writeMemory(folder, null, remembered('x', 1));
  t.same(await readMemory(folder), remembered('x', 1));
  t.equal(statSync(file).mode & 0o777, 0o640);
  const { ino } = statSync(file);
  await writeMemory(folder, await readMemory(folder), remembered('x', 1));
  t.equal(statSync(file).ino, ino, 'the same again costs flash nothing');
  await writeMemory(folder, await readMemory(folder), remembered('x', 2));
  t.match(readFileSync(file, 'utf8'), '"value":2');
  for (const damaged of ['', '{"counters":{"a', '[]', 'null', '{"counters":{"a":{"of":1}},"statuses":{}}']) {
    writeFileSync(file, damaged);
    t.equal(await readMemory(folder), null, damaged);
  }
  rmSync(file);
  mkdirSync(file);
  t.equal(await readMemory(folder), null);
});
