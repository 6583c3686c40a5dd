import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { LogLevel } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { testMessage } from './message.ts';
import { EMPTY_PLAN, taken } from './plan.ts';
import { added, EMPTY_QUEUE, settled } from './queue.ts';
import { EMPTY_STATE, parseState, type State, StateFile, stateFile, withChange } from './state.ts';
import { alertChange } from './subject.ts';
import { facts } from './testing/lines.ts';

const alert = {
  alert_id: 'n/cpu_percent/1',
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 85,
  threshold: 80,
  timestamp: '2026-03-04T05:06:07.089Z',
  resolved: false,
} as const;
const plan = taken(EMPTY_PLAN, alertChange(alert), facts.nowMs);
const message = testMessage(facts);
const webhook = added(EMPTY_QUEUE, message.id, 100, facts.nowMs).queue;
const pending = { number: 1, queues: { webhook }, messages: { [message.id]: message } };

const onDisk = (folder: string): State => parseState(readFileSync(stateFile(folder), 'utf8'));

t.test('saved state is loaded after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const lines: string[] = [];
  const log = (_: LogLevel, text: string) => lines.push(text);
  const file = await StateFile.open(folder, log);
  await Promise.all([file.save({ plan, cursor: 'p1' }), file.save(pending)]);
  await file.save({ cursor: 'p2' });
  await file.flush();
  const expected = { ...withChange(EMPTY_STATE, { ...pending, plan }), cursor: 'p2' };
  t.same((await StateFile.open(folder, log)).state, JSON.parse(JSON.stringify(expected)));
  t.same(lines, []);
  t.equal(statSync(stateFile(folder)).mode & 0o777, 0o640);
});

t.test('a damaged file is reported, and replaced with the next change', async (t) => {
  const folder = temporaryFolder(t);
  const file = await StateFile.open(folder, () => undefined);
  await file.save({ ...pending, plan });
  await file.flush();
  const text = readFileSync(stateFile(folder), 'utf8');
  for (let length = text.length - 2; length > 0; length -= 7) t.throws(() => parseState(text.slice(0, length)), `${length} bytes`);
  t.throws(() => parseState(text.replace('"pending":[]', '"pending":7')));
  t.throws(() => parseState(text.replace('"version":1', '"version":2')));
  t.same(parseState(''), EMPTY_STATE);
  writeFileSync(stateFile(folder), text.slice(0, -10));
  const lines: string[] = [];
  const again = await StateFile.open(folder, (level, line) => lines.push(`${level} ${line}`));
  t.match(lines, [/^error notifications: saved state unreadable; open alerts are notified again$/]);
  await again.save({ cursor: 'after' });
  t.equal(onDisk(folder).cursor, 'after');
});

t.test('a noted value causes no write of its own, and is saved with the next write and at the end', async (t) => {
  const folder = temporaryFolder(t);
  const file = await StateFile.open(folder, () => undefined);
  await file.save({ number: 1 });
  const { ino } = statSync(stateFile(folder));
  for (let i = 0; i < 100; i++) {
    file.note({ cursor: `${i}`, plan });
    await new Promise(setImmediate);
  }
  t.equal(file.state.cursor, '99');
  t.equal(statSync(stateFile(folder)).ino, ino, 'the file was not replaced');
  await file.save({ number: 2 });
  t.match(onDisk(folder), { number: 2, cursor: '99' });
  file.note({ cursor: 'last' });
  await file.flush();
  t.match(onDisk(folder), { number: 2, cursor: 'last' });
});

t.test('each save resolves when it is on the disk, also while another is being written', async (t) => {
  const folder = temporaryFolder(t);
  const file = await StateFile.open(folder, () => undefined);
  const saves: Promise<void>[] = [];
  for (let i = 1; i <= 20; i++) {
    saves.push(file.save({ number: i }).then(() => void t.ok(onDisk(folder).number >= i, `${i}`)));
    if (i % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(saves);
});

t.test('while writes fail the state stays in memory, which is logged once; it is written later', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'ops'), ''); // No folder can be created there, not even by root.
  const levels: string[] = [];
  const file = await StateFile.open(folder, (level) => levels.push(level));
  const before = levels.length;
  await file.save({ cursor: 'a' });
  await file.save({ cursor: 'b' });
  t.equal(file.state.cursor, 'b');
  t.same(levels.slice(before), ['error']);
  rmSync(join(folder, 'ops'));
  mkdirSync(join(folder, 'ops'));
  await file.save({ number: 3 });
  await file.flush();
  t.same(levels.slice(before), ['error', 'notice']);
  t.match(onDisk(folder), { cursor: 'b', number: 3 });
});

t.test('a message is removed with the last queue that contains it', async (t) => {
  const full = withChange(withChange(EMPTY_STATE, { queues: { webhook }, messages: { [message.id]: message } }), {
    queues: { command: webhook },
  });
  const one = withChange(full, { queues: { webhook: EMPTY_QUEUE } });
  t.same(Object.keys(one.messages), [message.id]);
  t.same(Object.keys(withChange(one, { queues: { command: EMPTY_QUEUE } }).messages), []);
});

/** Clocks of one boot, moved by the test. */
function bootClocks(fromBootSeconds = 100, fromMs = facts.nowMs) {
  let [bootSeconds, wallMs] = [fromBootSeconds, fromMs];
  const clocks = { bootSeconds: () => bootSeconds, wallMilliseconds: () => wallMs };
  const pass = (seconds: number, steppedMs = 0): void => {
    bootSeconds += seconds;
    wallMs += seconds * 1000 + steppedMs;
  };
  return { clocks, pass };
}

t.test('a step of the clock, forward or back, changes no age, also if it comes while no scheduler runs', async (t) => {
  for (const stepMs of [3 * DAY_MS, -3 * DAY_MS, Date.UTC(2026, 0)]) {
    const folder = temporaryFolder(t);
    const { clocks, pass } = bootClocks();
    const file = await StateFile.open(folder, () => undefined, clocks);
    const queue = settled(webhook, message.id, { kind: 'retry', detail: 'down' }, facts.nowMs, 0.5).queue;
    await file.save({ ...pending, plan: { ...plan, sentMs: [facts.nowMs] }, queues: { webhook: queue } });
    const ages = (of: StateFile): number[] => {
      const nowMs = of.nowMs();
      const { plan, queues } = of.state;
      const times = [queues.webhook.pending[0]?.createdMs, queues.webhook.pending[0]?.nextMs, queues.webhook.last?.ms, plan.sentMs[0]];
      return [...times, Object.values(plan.subjects)[0]?.pending?.firstMs].map((ms) => nowMs - (ms ?? 0));
    };
    const before = ages(file);
    pass(7, stepMs);
    const expected = before.map((ms) => ms + 7000);
    t.same(ages(file), expected, `${stepMs} ms`);
    await file.flush();
    pass(3, stepMs);
    t.same(
      ages(await StateFile.open(folder, () => undefined, clocks)),
      expected.map((ms) => ms + 3000),
      `${stepMs} ms between two schedulers`,
    );
  }
});

t.test('after a boot, the wall clock counts, and a time from a clock that was never set is now', async (t) => {
  const folder = temporaryFolder(t);
  const unset = bootClocks(100, 100_000);
  const file = await StateFile.open(folder, () => undefined, unset.clocks);
  await file.save({ ...pending, queues: { webhook: added(webhook, 'unset', 100, 100_000).queue } });
  const text = readFileSync(stateFile(folder), 'utf8');
  writeFileSync(stateFile(folder), text.replace(/"boot_id":"[^"]*"/, '"boot_id":"another"'));
  const booted = bootClocks(5, facts.nowMs + HOUR_MS);
  const again = await StateFile.open(folder, () => undefined, booted.clocks);
  t.same(
    again.state.queues.webhook.pending.map(({ createdMs }) => createdMs),
    [facts.nowMs, facts.nowMs + HOUR_MS],
  );
});
