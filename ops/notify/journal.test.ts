import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { LogLevel } from '../../src/core/ports.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Journal, journalFile } from './journal.ts';
import { EMPTY_MEMORY, memoryOf, merged, patched } from './memory.ts';
import { testMessage } from './message.ts';
import { EMPTY_PLAN, taken } from './plan.ts';
import { added, EMPTY_QUEUE } from './queue.ts';
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
const plan = taken(EMPTY_PLAN, alertChange('n', alert), facts.nowMs);
const message = testMessage(facts);
const webhook = added(EMPTY_QUEUE, message.id, 100, facts.nowMs).queue;

t.test('what was saved is there after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const lines: string[] = [];
  const log = (_: LogLevel, text: string) => lines.push(text);
  const journal = await Journal.open(folder, log);
  await Promise.all([
    journal.save({ plan, place: 'p1' }),
    journal.save({ number: 1, queues: { webhook }, messages: { [message.id]: message } }),
  ]);
  await journal.save({ place: 'p2' });
  await journal.close();
  const again = await Journal.open(folder, log);
  t.same(
    again.memory,
    JSON.parse(
      JSON.stringify({
        ...EMPTY_MEMORY,
        number: 1,
        place: 'p2',
        plan,
        queues: { ...EMPTY_MEMORY.queues, webhook },
        messages: { [message.id]: message },
      }),
    ),
  );
  t.same(lines, []);
  t.equal(statSync(journalFile(folder)).mode & 0o777, 0o640);
});

t.test('cut anywhere, it has all whole lines; what is damaged in the middle is told', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await Journal.open(folder, () => undefined);
  await journal.save({ plan });
  for (let i = 0; i < 5; i++) await journal.save({ place: `place ${i}` });
  await journal.save({ number: 1, queues: { webhook }, messages: { [message.id]: message } });
  await journal.close();
  const text = readFileSync(journalFile(folder), 'utf8');
  t.equal(text.split('\n').length, 8, 'a line for each change, and the whole first');
  for (let length = text.length; length >= 0; length -= 7) {
    const { damaged, memory } = memoryOf(text.slice(0, length));
    t.equal(damaged, 0);
    const whole = text.slice(0, text[length] === '\n' ? length + 1 : length).split('\n').length - 1;
    t.equal(memory.place, whole < 2 ? null : `place ${Math.min(4, whole - 2)}`, `${length} bytes`);
  }
  const lines = text.split('\n');
  t.match(memoryOf([lines[0], '{"v":1,"place":', ...lines.slice(2)].join('\n')), { damaged: 1, memory: { place: 'place 4' } });
  t.match(memoryOf(`${lines[0]}\n{"v":1,"queues":{"webhook":{"waiting":7}}}\n\0\0\0\n${lines[1]}\n`), {
    damaged: 2,
    memory: { place: 'place 0' },
  });
  const lost = memoryOf(`${JSON.stringify({ v: 1, queues: { webhook } })}\n`).memory;
  t.same(lost.queues.webhook.waiting, [], 'without its text nothing can be sent');
  appendFileSync(journalFile(folder), '{"v":1,"pla');
  const again = await Journal.open(folder, () => t.fail('a torn line is no damage'));
  await again.save({ place: 'after' });
  await again.close();
  t.equal(memoryOf(readFileSync(journalFile(folder), 'utf8')).memory.place, 'after');
});

t.test('what is only noted costs no write of its own, and is there with the next, and after the end', async (t) => {
  const folder = temporaryFolder(t);
  const onDisk = () => memoryOf(readFileSync(journalFile(folder), 'utf8')).memory;
  const journal = await Journal.open(folder, () => undefined);
  await journal.save({ number: 1 });
  const linesOnDisk = (): number => readFileSync(journalFile(folder), 'utf8').split('\n').length;
  const lines = linesOnDisk();
  for (let i = 0; i < 100; i++) journal.note({ place: `${i}`, plan });
  t.equal(journal.memory.place, '99');
  await journal.save({ number: 2 });
  t.equal(linesOnDisk(), lines + 1, 'one write for all of it');
  t.match(onDisk(), { number: 2, place: '99' });
  journal.note({ place: 'last' });
  await journal.close();
  t.match(onDisk(), { number: 2, place: 'last' });
});

t.test('it is written anew before it grows large', async (t) => {
  const folder = temporaryFolder(t);
  const journal = await Journal.open(folder, () => undefined);
  await journal.save({ plan });
  let largest = 0;
  for (let i = 0; i < 60; i++) {
    await journal.save({ place: `${i} ${'x'.repeat(10_000)}` });
    largest = Math.max(largest, statSync(journalFile(folder)).size);
  }
  await journal.close();
  t.ok(largest < 300_000, `${largest} bytes`);
  t.match(memoryOf(readFileSync(journalFile(folder), 'utf8')).memory.place, /^59 /);
});

t.test('where the disk refuses, all goes on in memory, is told once, and is written when it can be', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'ops'), ''); // No folder can be made there; also root is refused.
  const told: string[] = [];
  const journal = await Journal.open(folder, (level) => told.push(level));
  await journal.save({ place: 'a' });
  await journal.save({ place: 'b' });
  t.equal(journal.memory.place, 'b');
  t.same(told.filter((level) => level === 'error').length, told.length);
  const before = told.length;
  rmSync(join(folder, 'ops'));
  mkdirSync(join(folder, 'ops'));
  await journal.save({ number: 3 });
  await journal.close();
  t.same(told.slice(before), ['notice']);
  t.match(memoryOf(readFileSync(journalFile(folder), 'utf8')).memory, { place: 'b', number: 3 });
});

t.test('messages go with the last queue that has them', async (t) => {
  const full = patched(
    EMPTY_MEMORY,
    merged({ v: 1, queues: { webhook, command: webhook } }, { v: 1, messages: { [message.id]: message } }),
  );
  const one = patched(full, { v: 1, queues: { webhook: EMPTY_QUEUE } });
  t.same(Object.keys(one.messages), [message.id]);
  t.same(Object.keys(patched(one, { v: 1, queues: { command: EMPTY_QUEUE } }).messages), []);
});
