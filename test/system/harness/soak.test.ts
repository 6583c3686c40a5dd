import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { worst } from '../../../harness/engine/judgement.ts';
import type { RecordEntry } from '../../../harness/record/entries.ts';
import { readRecord } from '../../../harness/record/reader.ts';
import type { Findings } from '../../../harness/soak/checks.ts';
import type { SoakReport } from '../../../harness/soak/report.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/**
 * The soak in a short form. How many samples were taken, how memory developed and how late REST was depends on what else the machine does:
 * `npm run soak` judges that. These tests check what does not depend on it: what was sampled arrives on every channel, once, and every
 * channel reports the same alerts.
 */

t.setTimeout(600_000);

type Document = SoakReport & Pick<Findings, 'facts' | 'alerts' | 'requests'>;

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  readonly document: Document;
  readonly page: string;
  /** From the record of the harness. */
  readonly entries: readonly RecordEntry[];
}

/** Runs the program; with `interruptAt`, sends Ctrl-C once that was printed. */
async function soak(t: Test, argv: readonly string[], interruptAt: RegExp | null = null): Promise<Ended> {
  const folder = temporaryFolder(t);
  const program = join(ROOT, 'harness/soak/main.ts');
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...argv, '--out', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  t.teardown(() => child.kill('SIGTERM'));
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  if (interruptAt !== null) {
    await until(`output ${interruptAt}`, () => interruptAt.test(errors) || child.exitCode !== null, { describe: () => errors });
    child.kill('SIGINT');
  }
  const [code] = await closed;
  const text = (name: string): string => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '');
  const entries: RecordEntry[] = [];
  readRecord(join(folder, 'run'), (entry) => entries.push(entry));
  return { code, output, errors, entries, page: text('soak.md'), document: JSON.parse(text('soak.json') || '{}') as Document };
}

/** Time stamps of the received statuses, in milliseconds since the epoch. */
function stampsOf(entries: readonly RecordEntry[], channel: 'topic' | 'events'): number[] {
  return entries.flatMap((entry) => {
    const received = entry.type === 'minute' ? entry[channel] : null;
    if (received === null || received.first === null) return [];
    const stamps = [received.first];
    for (const step of received.steps) stamps.push((stamps.at(-1) as number) + step);
    return stamps;
  });
}

t.test('a soak of 90 s at 200 Hz', async (t) => {
  const { code, document, entries, errors, output, page } = await soak(t, ['--samples', '18000']);
  const { alerts, checks, facts } = document;
  const judged = worst(checks.map(({ verdict }) => verdict));
  t.match({ code, verdict: document.verdict }, { code: { PASS: 0, FAIL: 1, INCOMPLETE: 2 }[judged], verdict: judged }, output);
  const verdictOf = (name: string): string | undefined => checks.find(({ check }) => check === name)?.verdict;
  for (const name of ['sampling', 'topic', 'events', 'stored', 'memory', 'open-files', 'rest']) t.ok(verdictOf(name), name);
  for (const name of ['service', 'database', 'alerts']) t.equal(verdictOf(name), 'PASS', `${name}: ${output}`);
  t.ok(
    entries.some(({ type }) => type === 'end'),
    errors.slice(-3000),
  );

  await t.test('everything stored was received, each status once', async (t) => {
    const scans = entries.filter((entry) => entry.type === 'coverage').filter((entry) => entry.of === 'stored');
    const topic = stampsOf(entries, 'topic');
    const events = stampsOf(entries, 'events');
    const scan = scans.find(({ count }) => count > 0);
    if (!scan) return t.fail('nothing was stored');
    // Where both the subscription and the scan cover the time; a scan ends before its `to`.
    const fromMs = Math.max(scan.from, events[0] as number, topic[0] as number);
    const toMs = Math.min(scan.to, events.at(-1) as number, topic.at(-1) as number);
    const within = (stamps: readonly number[]): number[] => stamps.filter((ms) => ms >= fromMs && ms <= toMs && ms < scan.to);
    t.ok(within(events).length > 1000, `${within(events).length} statuses`);
    // A subscriber that is not scheduled for longer than the service keeps statuses misses some, which is recorded.
    if (entries.some((entry) => entry.type === 'note' && entry.text.includes('never delivered'))) t.ok(topic.length <= events.length);
    else t.same(within(topic), within(events), 'the topic and the event stream');
    const outside = events.filter((ms) => ms >= scan.from && ms < scan.to).length - within(events).length;
    t.ok(scan.count >= within(events).length, `${scan.count} stored, ${within(events).length} received, ${outside} of them outside`);
    const peer = checks.find(({ check }) => check === 'peer');
    if (peersUnavailable() === false) t.ok((peer?.measured.value ?? 100) < 100, 'the independent subscriber');
  });

  await t.test('every channel reports the same alerts', async (t) => {
    const { channels, cycles, observedIds } = alerts;
    t.ok(cycles >= 1, `the temperature rose ${cycles} times`);
    const ids = observedIds.filter((id) => id.includes('/temperature/'));
    t.ok(ids.length >= 1, `${ids.length} episodes`);
    for (const id of ids) {
      t.match(channels.events?.[id]?.join(', '), /^WARNING, CRITICAL, .*resolved$/);
      t.same(channels.topic?.[id], channels.events?.[id], 'the topic');
      t.same(channels.rest?.[id], channels.events?.[id], '/alerts');
      if (peersUnavailable() === false) t.same(channels.peer?.[id], channels.events?.[id], 'the independent subscriber');
    }
  });

  // One large request is made every thirty seconds, so that not each of them is made in this time.
  const requested = document.requests.filter(({ requests }) => requests > 0);
  t.ok(requested.length >= 10, `${requested.length} endpoints were requested`);
  // On a slow machine, a single large request may fail.
  for (const { failed, path, requests } of requested.filter(({ requests }) => requests >= 3))
    t.ok(requests > failed, `${path}: ${failed} of ${requests} requests failed`);
  t.match(page, `# edge-health soak: ${judged}`);
  t.match(page, facts.machine.cpu, 'the machine is named');
});

t.test('an interrupted soak without ROS 2 reports what there is', async (t) => {
  const { code, document, errors, output, page } = await soak(t, ['--samples', '36000', '--transport', 'off'], / of 3 min \(/);
  t.ok(code === 2 || code === 1, `${code}: ${output}\n${errors.slice(-3000)}`);
  t.equal(document.verdict, code === 2 ? 'INCOMPLETE' : 'FAIL', document.statement);
  t.same(
    document.checks.map(({ check }) => check).filter((check) => ['topic', 'events', 'stored', 'peer'].includes(check)),
    ['events', 'stored'],
  );
  t.equal(document.alerts.channels.topic, null);
  t.notOk(document.checks.some(({ verdict }) => verdict === 'PASS'));
  t.match(page, 'the run was interrupted');
});

t.test('a soak that cannot run, and wrong arguments, are refused', async (t) => {
  const refused = await soak(t, ['--samples', '36000', '--transport', 'rclnodejs']);
  // With a sourced and prepared ROS 2 it could.
  if (refused.code === 69) t.match(refused.errors, /soak: the service is not on the graph by rclnodejs, but off: /);
  else t.equal(process.env['ROS_DISTRO'] === undefined, false, refused.errors);
  const wrong = await soak(t, ['--transport', 'carrier-pigeon']);
  t.equal(wrong.code, 64);
  t.match(wrong.errors, /allowed: embedded, rclnodejs, off\n\nUsage: npm run soak/);
});
