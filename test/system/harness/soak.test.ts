import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { worst } from '../../../harness/engine/judgement.ts';
import type { Check } from '../../../harness/soak/check.ts';
import type { Findings } from '../../../harness/soak/findings.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/**
 * The soak in a short form. How many samples were taken, what memory did and how late REST was depends on what else the machine does:
 * `npm run soak` judges that. Here holds what depends on nothing: what was sampled arrives on every channel, once, and every channel
 * reports the same alerts.
 */

t.setTimeout(600_000);

interface Document {
  readonly verdict: 'PASS' | 'FAIL' | 'INCOMPLETE';
  readonly statement: string;
  readonly checks: readonly Check[];
  readonly findings: Findings;
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  readonly document: Document;
  readonly page: string;
}

/** Runs the program; with `interruptAt`, Ctrl-C once that was printed. */
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
  return { code, output, errors, page: text('soak.md'), document: JSON.parse(text('soak.json') || '{}') as Document };
}

t.test('90 s at 200 Hz', async (t) => {
  const { code, document, errors, output, page } = await soak(t, ['--samples', '18000']);
  const { checks, findings } = document;
  const judged = worst(checks.map(({ verdict }) => verdict));
  t.match({ code, verdict: document.verdict }, { code: { PASS: 0, FAIL: 1, INCOMPLETE: 2 }[judged], verdict: judged }, output);
  for (const name of ['service', 'sampling', 'memory', 'files', 'sockets', 'database', 'alerts', 'rest'])
    t.ok(
      checks.some(({ check }) => check === name),
      name,
    );
  t.match(findings, { died: null, cutShort: null, expected: 18_000, samplesGivenUp: 0 }, errors.slice(-3000));

  await t.test('what was stored was received, each status once', async (t) => {
    const counts = Object.fromEntries(findings.counted.map(({ count, way }) => [way, count]));
    const stored = counts['stored'] ?? -1;
    t.ok(stored > 0 && stored <= 18_001, `${stored} stored`);
    t.equal(counts['events'], stored, 'by the event stream');
    // A subscriber that does not run for longer than the service keeps statuses for it misses some, and is told so.
    const isShort = findings.notes.some((note) => note.includes('published and never delivered'));
    if (isShort) t.ok((counts['topic'] ?? -1) <= stored, findings.notes.join('\n'));
    else t.equal(counts['topic'], stored, 'on the topic');
    if (peersUnavailable() === false) t.ok((counts['peer'] ?? -1) > 0 && (counts['peer'] ?? 0) <= stored, 'by the independent subscriber');
  });

  await t.test('every channel reports the same alerts', async (t) => {
    const { byWay, turns } = findings.alerts;
    t.ok(turns >= 1, `the temperature rose ${turns} times`);
    const episodes = Object.entries(byWay.events ?? {}).filter(([id]) => id.includes('/temperature/'));
    t.ok(episodes.length >= 1);
    for (const [, changes] of episodes) t.match(changes.join(', '), /^WARNING, CRITICAL, .*resolved$/);
    t.same(byWay.topic, byWay.events, 'the topic');
    t.same(byWay.rest, byWay.events, '/alerts');
    if (peersUnavailable() === false) t.same(byWay.peer, byWay.events, 'the independent subscriber');
  });

  // One large request is made every thirty seconds, so not each of them in this time.
  const requested = findings.rest.filter(({ asked }) => asked > 0);
  t.ok(requested.length >= 10, `${requested.length} endpoints were requested`);
  for (const { asked, failed, path } of requested) t.ok(asked > failed, `${path} answered ${asked - failed} of ${asked} requests`);
  t.match(page, `# edge-health soak: ${judged}`);
  t.match(page, findings.machine.cpu, 'the machine is named');
  t.match(errors, /elapsed, \d:\d\d left \| topic [\d.]+ % \| events/);
});

t.test('off the graph, and ended early: what there is', async (t) => {
  const { code, document, errors, output, page } = await soak(t, ['--samples', '36000', '--transport', 'off'], /elapsed/);
  t.ok(code === 2 || code === 1, `${code}: ${output}\n${errors.slice(-3000)}`);
  t.equal(document.verdict, code === 2 ? 'INCOMPLETE' : 'FAIL', document.statement);
  const { counted, cutShort, expected, alerts } = document.findings;
  t.match(cutShort, /^interrupted after \d+ of 180 s$/);
  t.ok(expected < 36_000, `${expected} samples`);
  t.same(
    counted.filter(({ count }) => count !== null).map(({ way }) => way),
    ['events', 'stored'],
  );
  t.equal(alerts.byWay.topic, null);
  t.notOk(document.checks.some(({ verdict }) => verdict === 'PASS'));
  t.match(page, 'interrupted after');
});

t.test('where it cannot run, and what was typed wrong', async (t) => {
  const refused = await soak(t, ['--samples', '36000', '--transport', 'rclnodejs']);
  // With a sourced and prepared ROS 2 it could.
  if (refused.code === 69) t.match(refused.errors, /soak: the service is not on the graph by rclnodejs, but off: /);
  else t.equal(process.env['ROS_DISTRO'] === undefined, false, refused.errors);
  const wrong = await soak(t, ['--transport', 'carrier-pigeon']);
  t.equal(wrong.code, 64);
  t.match(wrong.errors, /allowed: embedded, rclnodejs, off\n\nUsage: npm run soak/);
});
