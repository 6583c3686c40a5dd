import { cpSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import type { Position, RecordCursor, RecordedEvent } from '../core/ports.ts';
import { DAY_MS, HOUR_MS } from '../core/time/time.ts';
import { change } from './testing/alerts.ts';
import { row, series, toStatus } from './testing/rows.ts';
import { NODE, START, startStore, TestStore } from './testing/store.ts';

async function after(started: TestStore, { health, alert }: Position): Promise<readonly RecordedEvent[]> {
  return (await started.store.recorded({ healthAfter: health, alertAfter: alert, node: null, limit: 10_000 })).events;
}

/** Records a robot's and this machine's samples in turn, with occasional alerts; returns them in that order with the cursor after each. */
async function converse(started: TestStore, fromMs: number, count: number): Promise<{ json: string; position: Position }[]> {
  const said: { json: string; position: Position }[] = [];
  const none = { segment: started.store.segment() as number, sequence: 0 };
  let position: Position = { health: none, alert: none };
  for (let i = 0; i < count; i += 1) {
    const node = i % 3 === 0 ? 'robot' : NODE;
    // The robot's clock is two hours behind and sometimes stands still.
    const sample = row(fromMs + i * 1000 - (node === 'robot' ? 2 * HOUR_MS + (i % 4) * 5000 : 0), i);
    const [health] = i % 20 === 10 ? started.recordNextMinute([sample], node) : started.record([sample], node);
    position = { ...position, health: health as RecordCursor };
    said.push({ json: JSON.stringify(toStatus(sample, node)), position });
    if (i % 7 !== 3) continue;
    const alert = change(`${node}/cpu_percent/${fromMs + i}`, fromMs + i);
    const { isNew, cursor } = await started.store.recordAlert(alert);
    t.equal(isNew, true);
    position = { ...position, alert: cursor as RecordCursor };
    said.push({ json: JSON.stringify(alert), position });
  }
  return said;
}

t.test('the records after any event are found, also after a kill, whatever the clocks did', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  const said = await converse(first, START, 90);
  const check = async (started: TestStore, more: readonly string[]): Promise<void> => {
    for (const at of [0, 1, 17, 50, said.length - 2, said.length - 1]) {
      const wanted = [...said.slice(at + 1).map(({ json }) => json), ...more];
      t.same(
        (await after(started, said[at]?.position as Position)).map(({ json }) => json),
        wanted,
        `after ${at}`,
      );
    }
  };
  await check(first, []);
  // The files as a kill at this moment would leave them.
  const killed = temporaryFolder(t);
  cpSync(folder, killed, { recursive: true });
  const second = await startStore(t, killed);
  await check(second, []);
  const later = await converse(second, START + HOUR_MS, 30);
  await check(
    second,
    later.map(({ json }) => json),
  );
  await second.stop();
  const third = await startStore(t, killed);
  await check(
    third,
    later.map(({ json }) => json),
  );
});

t.test('a repeated change is recognized, also after a restart and for a resolved episode', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  const raised = change('robot/cpu_percent/1', START);
  const over = change('robot/cpu_percent/1', START + 1000, { resolved: true });
  t.equal((await first.store.recordAlert(raised)).isNew, true);
  t.equal((await first.store.recordAlert(raised)).isNew, false);
  t.equal((await first.store.recordAlert(over)).isNew, true);
  t.equal((await first.store.recordAlert(change('robot/cpu_percent/1', START + 500))).isNew, false);
  await first.stop();
  const second = await startStore(t, folder);
  t.equal((await second.store.recordAlert(raised)).isNew, false);
  t.equal((await second.store.recordAlert(over)).isNew, false);
});

t.test('the publish rate of a remote node determines its expected samples', async (t) => {
  const started = await startStore(t, temporaryFolder(t));
  started.store.recordRate('robot', 10, START);
  started.record(series(START, 600, 100), 'robot');
  const [minute] = await started.store.aggregate({ node: 'robot', fromMs: START, toMs: START + 60_000, by: null });
  t.equal(minute?.samples_expected, 600);
  t.equal(Math.round(Object.values(minute?.status_seconds ?? {}).reduce((sum, seconds) => sum + seconds, 0)), 60);
});

t.test('after the clock was set back new records follow the existing ones, also if the database is opened later', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'data/edge-health.db');
  const ahead = Date.now() + DAY_MS;
  await (await startStore(t, folder)).stop();
  const db = new DatabaseSync(path);
  const values = [`${NODE}/cpu_percent/0`, START, NODE, 'cpu_percent', 'WARNING', 85, 80, 1, ahead, 7];
  db.prepare('INSERT INTO alert_change VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...values);
  db.close();
  const place = { segment: ahead, sequence: 7 };
  const check = async (started: TestStore, n: number): Promise<void> => {
    t.ok((started.store.segment() ?? 0) > ahead);
    const alert = change(`${NODE}/cpu_percent/${n}`, START + n);
    await started.store.recordAlert(alert);
    const { events } = await started.store.recorded({ healthAfter: null, alertAfter: place, node: null, limit: 100 });
    t.equal(events.at(-1)?.json, JSON.stringify(alert));
    t.equal(events.length, n);
  };
  const first = new TestStore(folder);
  t.teardown(() => first.stop());
  const starting = first.store.start();
  t.same(first.record(series(START, 1)), [null], 'while the database is opened, its last cursor is not known');
  await starting;
  t.ok((first.record(series(START + 1000, 1))[0]?.segment ?? 0) > ahead);
  await check(first, 1);
  await first.stop();
  renameSync(path, `${path}.away`);
  symlinkSync(join(folder, 'not-mounted/edge-health.db'), path);
  const late = await startStore(t, folder);
  t.ok((late.store.segment() ?? 0) < ahead, 'not known yet');
  unlinkSync(path);
  renameSync(`${path}.away`, path);
  late.recordNextMinute(series(START, 1));
  await until('it is opened', () => late.lateOpens.length > 0);
  await check(late, 2);
});
