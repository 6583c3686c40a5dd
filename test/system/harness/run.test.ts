import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Criterion, type Judgement, VERDICT_EXIT } from '../../../harness/engine/judgement.ts';
import type { ReportDocument } from '../../../harness/report/document.ts';
import { networkUnavailable } from '../../../testkit/network/network.ts';
import { isRunning, Site, until } from './support/harness-process.ts';

t.setTimeout(240_000);
// Nearly all of the time they wait.
t.jobs = 4;
const skip = networkUnavailable();

const SECONDS = 40;
const REPORTS = ['junit.xml', 'report.html', 'report.json', 'report.md'];

function judgement({ judgements }: ReportDocument, criterion: Criterion): Judgement {
  return judgements.find((one) => one.criterion === criterion) as Judgement;
}

const evidence = ({ evidence: quantities }: Judgement, label: string): number | null | undefined =>
  quantities.find((one) => one.label === label)?.value;

/** Nothing of the run's is running any more. */
async function isOver(t: Test, pids: readonly number[]): Promise<void> {
  await until(`the processes ${pids} end`, 20, () => !pids.some(isRunning));
  t.pass('nothing is left running');
}

t.test('a run in a checkout, from begin to report', { skip }, async (t) => {
  const site = new Site(t);
  const run = site.begin('--duration', `${SECONDS}s`);
  await run.says(/watching health_monitor at http:\/\/127\.0\.0\.1:5000 for 40 s/);
  const pids = [run.pid, site.pid('keeper/keeper.pid'), await site.servicePid(), site.pid('keeper/ops.pid')];

  const second = await site.command('run', '--out', site.folder, '--duration', '10s');
  t.equal(second.by, 75, 'two at once are refused');
  t.match(second.output, `(process ${run.pid}) watches into it already`.replace(' already', ''));
  const during = await site.command('status', site.folder);
  t.equal(during.by, 0);
  t.match(during.output, `process ${run.pid} watches`);
  t.match(during.output, /of 40 s/);

  const { by, output } = await run.ended();
  t.equal(by, 2, output);
  t.match(output, 'It is not the 168-hour verdict');
  await isOver(t, pids);

  const report = site.report();
  t.match(report, {
    verdict: 'INCOMPLETE',
    is_168_hour_verdict: false,
    run: { finished: true, origin: 'watched', planned_seconds: SECONDS },
  });
  t.ok(report.run.watched_seconds >= SECONDS);
  t.equal(report.run.absent_seconds, 0);
  t.equal(report.record?.entries, site.entries().length);
  t.equal(report.record?.head, site.entries().at(-1)?.hash);
  t.same(
    readdirSync(site.folder).filter((name) => /^(report|junit)/.test(name)),
    REPORTS,
  );

  await t.test('what there is evidence for is judged', async (t) => {
    const reliability = judgement(report, 'reliability');
    t.match(judgement(report, 'uptime'), { verdict: 'INCOMPLETE', margin: Number });
    t.equal(evidence(judgement(report, 'uptime'), 'restarts'), 0);
    // A machine that is too busy to take a sample is found by the same count.
    const [expected, received, lost] = ['expected', 'received', 'lost'].map((label) => evidence(reliability, label));
    t.equal(expected, SECONDS);
    t.equal((received ?? 0) + (lost ?? 0), expected);
    const places = Object.fromEntries((reliability.tables[0]?.rows ?? []).map(([place, count]) => [place, count]));
    t.match(places, { 'not published': 0, 'not delivered': 0 }, 'nothing is lost on the way');
    t.equal(reliability.verdict, lost === 0 ? 'PASS' : 'FAIL');
    t.equal(judgement(report, 'stability').verdict, 'INCOMPLETE', 'the warm-up is not over');
    t.equal(judgement(report, 'alerts').verdict, 'PASS');
    t.equal(judgement(report, 'performance').verdict, 'PASS');
    t.equal(evidence(judgement(report, 'integrity'), 'stored samples'), (received ?? 0) - 0, 'each is stored');
  });

  await t.test('and can be verified, written anew, but not overwritten', async (t) => {
    const verified = await site.command('verify', site.folder);
    t.equal(verified.by, 0, verified.output);
    const again = await site.command('report', site.folder);
    t.equal(again.by, 2, again.output);
    const over = await site.command('run', '--out', site.folder);
    t.equal(over.by, 64);
    t.match(over.output, /complete\. Choose another folder with --out, or write its report anew/);
    t.equal((await site.command('status', site.folder)).by, 0);
  });
});

t.test('a harness that is killed goes on with the service that it watched', { skip }, async (t) => {
  const site = new Site(t);
  const first = site.begin('--duration', `${SECONDS}s`);
  await site.recorded('minute');
  const service = await site.servicePid();
  first.kill('SIGKILL');
  t.equal((await first.ended()).by, 'SIGKILL');
  const between = await site.command('status', site.folder);
  t.equal(between.by, 3, 'unfinished, and nobody watches');
  t.match(between.output, 'go on with: edge-health harness run --out');
  const other = await site.command('run', '--out', site.folder, '--config', site.config, '--duration', '1h');
  t.equal(other.by, 64);
  t.match(other.output, 'holds an unfinished run of 40 s, not of 1 h');
  t.ok(isRunning(service), 'the service runs on');

  const resumed = site.begin();
  await resumed.says('going on with the run in');
  const { by, output } = await resumed.ended();
  t.equal(by, 2, output);
  t.match(output, 'is running still');
  const report = site.report();
  t.equal(evidence(judgement(report, 'uptime'), 'restarts'), 0, 'the absence is nothing to its discredit');
  t.ok(report.run.absent_seconds > 0, 'and is told');
  t.ok(report.run.watched_seconds >= SECONDS, 'and made up for');
  t.same(
    site
      .entries()
      .filter(({ type }) => ['begin', 'resume', 'service', 'end'].includes(type))
      .map(({ type }) => type),
    ['begin', 'service', 'resume', 'end'],
  );
  t.equal((await site.command('verify', site.folder)).by, 0);
  await isOver(t, [service]);
});

t.test('a service that is killed three times has failed', { skip }, async (t) => {
  const site = new Site(t);
  const run = site.begin('--duration', `${SECONDS}s`);
  await site.recorded('minute');
  let service = await site.servicePid();
  for (let kills = 0; kills < 3; kills += 1) {
    process.kill(service, 'SIGKILL');
    service = await site.servicePid(service);
    await site.answers();
  }
  const { by, output } = await run.ended();
  t.equal(by, 1, output);
  const uptime = judgement(site.report(), 'uptime');
  t.equal(uptime.verdict, 'FAIL');
  t.equal(evidence(uptime, 'restarts'), 3);
  const runs = site.entries().filter((entry) => entry.type === 'service');
  t.equal(
    runs.reduce((sum, { unseen }) => sum + 1 + unseen, -1),
    3,
  );
  t.same([...new Set(runs.slice(1).map(({ cause }) => cause))], ['signal'], 'with their cause');
  await isOver(t, [service]);
});

t.test('Ctrl-C ends it with a report, and it can be gone on with', { skip }, async (t) => {
  const site = new Site(t);
  const run = site.begin('--duration', '1h');
  await site.recorded('minute');
  const pids = [site.pid('keeper/keeper.pid'), await site.servicePid()];
  run.kill('SIGHUP');
  run.kill('SIGINT');
  run.kill('SIGINT');
  const { by, output } = await run.ended();
  // Over seconds anything may fail that is an average.
  t.equal(by, VERDICT_EXIT[site.report().verdict], output);
  t.match(site.entries().at(-1), { type: 'end', reason: 'stopped' });
  t.equal(site.report().run.finished, false);
  await isOver(t, pids);

  const resumed = site.begin('--duration', '1h');
  await site.recorded('resume');
  t.equal((await site.command('stop', site.folder)).by, 0, 'another process can have it stopped');
  t.equal((await resumed.ended()).by, VERDICT_EXIT[site.report().verdict]);
  const causes = site
    .entries()
    .filter((entry) => entry.type === 'service')
    .map(({ cause }) => cause);
  t.same(causes, ['first', 'stopped'], 'that the service was ended with it counts as well');
});

t.test('nothing is left running where the folder goes away', { skip }, async (t) => {
  const site = new Site(t);
  const run = site.begin('--duration', '1h');
  await site.recorded('minute');
  const pids = [site.pid('keeper/keeper.pid'), await site.servicePid(), site.pid('keeper/ops.pid')];
  rmSync(site.folder, { recursive: true });
  const { by, output } = await run.ended();
  t.equal(by, 69, output);
  t.match(output, /record\.ndjson was removed/);
  await isOver(t, pids);
});

t.test('another service, by its address', { skip }, async (t) => {
  const site = new Site(t);
  const nobody = await site.begin('--duration', '10s', '--url', 'http://127.0.0.1:1', '--transport', 'off').ended();
  t.equal(nobody.by, 69, nobody.output);
  t.match(nobody.output, /nothing answers at http:\/\/127\.0\.0\.1:1/);
  t.notOk(existsSync(join(site.folder, 'record.ndjson')));

  const service = site.service();
  const { by, output } = await site.begin('--duration', '15s', '--url', 'http://127.0.0.1:5000').ended();
  const report = site.report();
  t.equal(by, VERDICT_EXIT[report.verdict], output);
  t.equal(evidence(judgement(report, 'reliability'), 'received'), evidence(judgement(report, 'reliability'), 'by the event stream'));
  t.ok((evidence(judgement(report, 'reliability'), 'received') ?? 0) > 0, 'heard on the topic');
  t.notOk(existsSync(join(site.folder, 'keeper')), 'nothing was started');
  t.ok(isRunning(service), 'nor ended');
});

t.test('what it is told wrongly', { skip }, async (t) => {
  const site = new Site(t);
  const wrong: readonly (readonly [args: readonly string[], message: string | RegExp])[] = [
    [[], /Usage: edge-health harness COMMAND/],
    [['rum'], 'there is no command "rum"; commands: run, start, status, stop, report, verify'],
    [['run', '--durations', '1h'], /'--durations'; see: edge-health harness run --help/],
    [['run', '--duration', '1 week'], '--duration is "1 week"; allowed: a length of time such as 168h'],
    [['run', '--duration', '1s'], 'from 10s to 366d'],
    [['run', '--transport', 'dds'], '--transport is "dds"; allowed: auto, embedded, rclnodejs, off'],
    [['run', '--url', 'robot-7'], '--url is "robot-7"; allowed: an address such as http://robot-7:5000'],
    [['run', '--url', 'http://robot-7:5000', '--unit', 'edge-health'], 'give either --url or --unit'],
    [['run', 'here'], 'unexpected argument "here"'],
    [['verify'], 'name the folder of a run'],
    [['verify', site.folder, '--head', 'abc'], '64 hexadecimal digits'],
  ];
  for (const [args, message] of wrong) {
    const out = args[0] === 'run' ? ['--out', site.folder] : [];
    const { by, output } = await site.command(...args, ...out);
    t.equal(by, 64, `${args.join(' ')}: ${output}`);
    t.match(output, message);
  }
  for (const command of ['run', 'start', 'status', 'stop', 'report', 'verify']) {
    const { by, output } = await site.command(command, '--help');
    t.equal(by, 0);
    t.match(output, /^Exit codes: /m, `${command} --help`);
    const overview = (await site.command('--help')).output;
    t.match(overview, new RegExp(`^ {2}${command} `, 'm'));
  }
  for (const args of [
    ['start'],
    ['stop', `${site.folder}-missing`],
    ['report', `${site.folder}-missing`],
    ['status', `${site.folder}-missing`],
  ]) {
    const { by, output } = await site.command(...args);
    t.equal(by, 69, `${args.join(' ')}: ${output}`);
    t.notMatch(output, /\n\s+at /, 'in one line');
  }
});

t.test('the texts of the report say where it is from', { skip }, async (t) => {
  const site = new Site(t);
  const run = site.begin('--duration', '12s', '--transport', 'off');
  const { by, output } = await run.ended();
  t.equal(by, 2, output);
  const text = readFileSync(join(site.folder, 'report.md'), 'utf8');
  // It looks once a second whether the time is over.
  t.match(text, /This run lasted 1[23] s\. It is not the 168-hour verdict\./);
  t.match(text, /event stream/, 'and that it was not the topic');
});
