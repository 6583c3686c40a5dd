import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Counters, hasChanged, type PreviousRun, readPreviousRun, writeForNextRun } from './previous-run.ts';

const previousWith = (of: string, value: number): PreviousRun => ({ counters: { restarts: { of, value } }, statuses: {} });

t.test('counts the increase since the previous run', async (t) => {
  t.equal(new Counters(null).increase('restarts', 'boot 1', 5), 0, 'nothing is known before the first run');
  t.equal(new Counters({ counters: {}, statuses: {} }).increase('restarts', 'boot 1', 5), 0, 'nor of what is new');
  t.equal(new Counters(previousWith('boot 1', 3)).increase('restarts', 'boot 1', 5), 2);
  t.equal(new Counters(previousWith('boot 1', 3)).increase('restarts', 'boot 1', 3), 0);
  t.equal(new Counters(previousWith('boot 1', 3)).increase('restarts', 'boot 1', 1), 1, 'it was reset');
  t.equal(new Counters(previousWith('boot 1', 3)).increase('restarts', 'boot 2', 4), 4, 'of another boot it started at 0');
});

t.test('over any number of checks each increase is reported exactly once, unless the counter is set back', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 1 }), (steps) => {
      let previous: PreviousRun = previousWith('x', 0);
      let value = 0;
      let reported = 0;
      for (const step of steps) {
        value += step;
        const counters = new Counters(previous);
        reported += counters.increase('restarts', 'x', value);
        previous = { counters: counters.now, statuses: {} };
      }
      return reported === value;
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('a counter that could not be read keeps its previous value', async (t) => {
  const counters = new Counters(previousWith('x', 7));
  counters.increase('other', 'y', 1);
  t.same(counters.now, { other: { of: 'y', value: 1 }, restarts: { of: 'x', value: 7 } });
});

t.test('property names of every object are ordinary names', async (t) => {
  t.equal(new Counters({ counters: {}, statuses: {} }).increase('constructor', 'x', 3), 0);
  t.equal(hasChanged({ counters: {}, statuses: {} }, 'constructor', 'OK'), false);
});

t.test('the file is written when something changed, and any content is tolerated', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'ops/health_check.json');
  t.equal(await readPreviousRun(folder), null);
  await writeForNextRun(folder, null, previousWith('x', 1));
  t.same(await readPreviousRun(folder), previousWith('x', 1));
  t.equal(statSync(file).mode & 0o777, 0o640);
  const { ino } = statSync(file);
  await writeForNextRun(folder, await readPreviousRun(folder), previousWith('x', 1));
  t.equal(statSync(file).ino, ino, 'the same again costs flash nothing');
  await writeForNextRun(folder, await readPreviousRun(folder), previousWith('x', 2));
  t.match(readFileSync(file, 'utf8'), '"value":2');
  for (const damaged of ['', '{"counters":{"a', '[]', 'null', '{"counters":{"a":{"of":1}},"statuses":{}}']) {
    writeFileSync(file, damaged);
    t.equal(await readPreviousRun(folder), null, damaged);
  }
  rmSync(file);
  mkdirSync(file);
  t.equal(await readPreviousRun(folder), null);
});
