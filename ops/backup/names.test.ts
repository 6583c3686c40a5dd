import t from 'tap';
import { backupName, freeName, isPartial, newestFirst, newestNow, surplus, timeOfBackup } from './names.ts';

t.test('backups are named and sorted by time', async (t) => {
  const noon = Date.parse('2026-03-04T12:00:00Z');
  t.equal(backupName(noon), 'edge-health_20260304T120000Z.tar.zst');
  t.equal(timeOfBackup(backupName(noon)), noon);
  t.equal(timeOfBackup('edge-health_20260304T120000Z.tar.zst.partial'), null);
  t.equal(freeName([backupName(noon), backupName(noon + 1000)], noon + 500), backupName(noon + 2000), 'one a second');
  const twice = [backupName(noon), freeName([backupName(noon)], noon)];
  t.equal(newestFirst(twice, newestNow(noon))[0], twice[1], 'the second of two in a second is the newest');
  for (const name of ['edge-health_20260304T120000Z.tar.zst.partial', 'edge-health_20260304T120000Z.db.partial-journal'])
    t.ok(isPartial(name), name);
  for (const name of ['notes.partial', backupName(noon), 'edge-health.db.partial']) t.notOk(isPartial(name), name);
});

t.test('a clock that jumps removes no good backup', async (t) => {
  const day = 86_400_000;
  const noon = Date.parse('2026-03-04T12:00:00Z');
  const good = Array.from({ length: 14 }, (_, i) => backupName(noon - i * day));
  const next = backupName(noon + day);
  t.same(surplus([...good, next], next, 14), [good[13]], 'the oldest goes');
  const past = backupName(1000);
  t.same(surplus([...good, past], past, 14), [good[13]], 'a clock at 1970: its backup stays, the oldest of the others goes');
  const after = [...good.slice(0, 13), past, next];
  t.same(surplus(after, next, 14), [past], 'and is the first to go when the clock is right again');
  const future = Array.from({ length: 3 }, (_, i) => backupName(noon + (3000 + i) * day));
  t.same(
    surplus([...future, ...good.slice(0, 11), next], next, 14),
    [future[0]],
    'of a clock that was ahead: one for one, the good ones stay',
  );
  t.same(newestFirst([...future, ...good], backupName(noon + 1)).slice(0, 14), good, 'the newest is the newest before now');
  // At any clock time of each day, no more than the surplus is removed, and never the backup made last.
  let names: string[] = [];
  let nowMs = noon;
  for (let run = 0; run < 300; run += 1) {
    nowMs +=
      run % 17 === 3 ? -40 * 365 * day : run % 17 === 4 ? 40 * 365 * day : run % 23 === 5 ? 900 * day : run % 23 === 9 ? -900 * day : day;
    const name = freeName(names, Math.max(0, nowMs));
    const old = surplus([...names, name], name, 14);
    t.equal(old.length, Math.max(0, names.length + 1 - 14));
    t.notOk(old.includes(name));
    names = [...names, name].filter((one) => !old.includes(one));
  }
  t.equal(names.length, 14);
});
