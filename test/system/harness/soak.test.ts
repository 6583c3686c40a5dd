import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Check } from '../../../harness/soak/check.ts';
import { missedUnderSteal } from '../../../harness/soak/check-sampling.ts';
import type { Findings } from '../../../harness/soak/findings.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service.ts';

/** The soak in its shorter form: 60,000 samples, five minutes of mostly waiting. */

t.setTimeout(900_000);
const isRoot = process.getuid?.() === 0;
const skip = existsSync(join(ROOT, 'dist/main.cjs')) ? false : 'needs the built service: npm run build';
/** Beside other suites on two cores, what is measured here must not be what these take. The unit asks for nothing of the kind. */
const PRIORITY = isRoot && spawnSync('chrt', ['--rr', '1', 'true']).status === 0 ? ['--realtime'] : [];

interface Document {
  readonly verdict: string;
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

/** Runs the program; `interruptAfterSeconds`: Ctrl-C then, counted from its first line of progress. */
async function soak(t: Test, argv: readonly string[], interruptAfterSeconds: number | null = null): Promise<Ended> {
  const folder = temporaryFolder(t);
  const program = join(ROOT, 'harness/soak/main.ts');
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...argv, '--out', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  t.teardown(() => child.kill('SIGTERM'));
  let [output, errors] = ['', ''];
  let interruption: NodeJS.Timeout | null = null;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
    if (interruptAfterSeconds === null || interruption !== null || !errors.includes('elapsed')) return;
    interruption = setTimeout(() => child.kill('SIGINT'), interruptAfterSeconds * 1000);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  const text = (name: string): string => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '');
  return { code, output, errors, page: text('soak.md'), document: JSON.parse(text('soak.json') || '{}') as Document };
}

t.test('60,000 samples at 200 Hz', { skip }, async (t) => {
  const { code, document, errors, output, page } = await soak(t, ['--samples', '60000', ...PRIORITY]);
  const { checks, findings } = document;
  // While the host of a virtual machine runs others on its processors nothing runs in it: such slots are lost, and the soak says so,
  // but they fail no gate. Up to a tenth of them: a machine that has less than that to give measures nothing.
  const stolen = Math.min(missedUnderSteal(findings.sampling?.stretches ?? []), 6000);
  const failed = checks.filter(({ verdict }) => verdict !== 'PASS').map(({ check }) => check);
  const excused = stolen > 0 ? ['sampling', 'loss-topic', 'loss-events', 'loss-stored', 'loss-peer'] : [];
  t.same(
    failed.filter((check) => !excused.includes(check)),
    [],
    `${output}\n${errors.slice(-3000)}`,
  );
  const verdict = failed.length === 0 ? 'PASS' : 'FAIL';
  t.equal(code, failed.length === 0 ? 0 : 1);
  t.equal(document.verdict, verdict, document.statement);
  t.equal(findings.expected, 60_000);
  t.equal(findings.place, isRoot && peersUnavailable() === false ? 'a network namespace of its own' : findings.place);
  const ways = ['topic', 'events', 'stored', ...(peersUnavailable() === false ? ['peer'] : [])];
  for (const way of ways) {
    const counted = findings.counted.find((one) => one.way === way);
    const count = counted?.count ?? 0;
    // The edges of the window may fall between two slots.
    t.ok(count >= 59_400 - stolen && count <= 60_001, `${way}: ${count}, ${stolen} while the host took the processors`);
  }
  t.ok((findings.sampling?.taken ?? 0) >= 59_000 - stolen);
  for (const name of ['service', 'sampling', 'memory', 'files', 'sockets', 'database', 'alerts', 'rest']) {
    t.ok(
      checks.some(({ check }) => check === name),
      name,
    );
  }
  const { byWay, tides } = findings.alerts;
  t.ok(tides >= 10, `the temperature rose ${tides} times`);
  const tidal = Object.entries(byWay.events ?? {}).filter(([id]) => id.includes('/temperature/'));
  t.equal(tidal.length, tides);
  for (const [, changes] of tidal) t.match(changes.join(', '), /^WARNING, CRITICAL, .*resolved$/);
  t.ok(
    findings.rest.every(({ asked }) => asked >= 2) && findings.rest.filter(({ asked }) => asked >= 20).length >= 11,
    'every endpoint was asked all the time',
  );
  t.ok((findings.cpuSeconds ?? 0) > 0);
  t.match(page, `# edge-health soak: ${verdict}`);
  t.match(page, findings.machine.cpu, 'the machine is named');
  t.match(page, /left out: the first 1 min 30 s; medians of 30 s/, 'so is how memory was judged');
  t.match(errors, /elapsed, \d:\d\d left \| topic [\d.]+ % \| events/);
});

t.test('off the graph, and ended early: what there is', { skip }, async (t) => {
  const { code, document, errors, output, page } = await soak(t, ['--samples', '36000', '--transport', 'off', ...PRIORITY], 20);
  t.ok(code === 2 || code === 1, `${code}: ${output}\n${errors.slice(-3000)}`);
  t.equal(document.verdict, code === 2 ? 'INCOMPLETE' : 'FAIL', document.statement);
  const { counted, cutShort, expected, alerts } = document.findings;
  t.match(cutShort, /^interrupted after \d+ of 180 s$/);
  t.ok(expected >= 15 * 200 && expected < 100 * 200, `${expected} slots`);
  t.same(
    counted.filter(({ count }) => count !== null).map(({ way }) => way),
    ['events', 'stored'],
  );
  t.equal(alerts.byWay.topic, null);
  t.notOk(document.checks.some(({ verdict }) => verdict === 'PASS'));
  t.match(page, 'interrupted after');
});

t.test('where it cannot run, and what was typed wrong', { skip }, async (t) => {
  const refused = await soak(t, ['--samples', '36000', '--transport', 'rclnodejs']);
  // With a sourced and prepared ROS 2 it could.
  if (refused.code === 69) t.match(refused.errors, /soak: the service is not on the graph by rclnodejs, but off: /);
  else t.equal(process.env['ROS_DISTRO'] === undefined, false, refused.errors);
  const wrong = await soak(t, ['--transport', 'carrier-pigeon']);
  t.equal(wrong.code, 64);
  t.match(wrong.errors, /allowed: embedded, rclnodejs, off\n\nUsage: npm run soak/);
});
