/** Tests interrupted runs of the harness, and what it refuses; test/harness tests a run from its start to its report. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Criterion, type Judgement, VERDICT_EXIT } from '../../../harness/engine/judgement.ts';
import type { ReportDocument } from '../../../harness/report/document.ts';
import { Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { isRunning, RunFolder } from '../../../testkit/service/harness-process.ts';
import { measured, startService } from '../../../testkit/service/rest.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
// These tests wait for most of their time.
t.jobs = 3;

const SECONDS = 15;

function judgement({ judgements }: ReportDocument, criterion: Criterion): Judgement {
  return judgements.find((one) => one.criterion === criterion) as Judgement;
}

const evidence = ({ evidence: quantities }: Judgement, label: string): number | null | undefined =>
  quantities.find((one) => one.label === label)?.value;

const areOver = (pids: readonly number[]): Promise<true> => until(`the processes ${pids} end`, () => !pids.some(isRunning));

t.test('a run receives the topic, on a network of its own', { skip: networkUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const folder = new RunFolder(t, network.host());
  const { by, output } = await folder.run('--duration', `${SECONDS}s`).ended();
  const report = folder.report();
  t.equal(by, VERDICT_EXIT[report.verdict], output);
  const reliability = judgement(report, 'reliability');
  t.ok((evidence(reliability, 'received') ?? 0) > 0, 'statuses were received on the topic');
  const stages = Object.fromEntries((reliability.tables[0]?.rows ?? []).map(([stage, count]) => [stage, count]));
  t.match(stages, { 'not published': 0, 'not delivered': 0 }, 'none was lost between the service and the harness');
  t.equal(evidence(reliability, 'received'), evidence(reliability, 'by the event stream'), 'as many as by the event stream');
});

t.test('a harness that is killed resumes the run with the service that it observed', async (t) => {
  const folder = new RunFolder(t);
  const first = folder.run('--duration', `${SECONDS}s`);
  await folder.recorded('minute');
  const service = await folder.servicePid();
  first.kill('SIGKILL');
  t.equal((await first.ended()).by, 'SIGKILL');
  const between = await folder.command('status', folder.path);
  t.equal(between.by, 3, 'unfinished, and no process observes it');
  t.match(between.output, 'resume with: edge-health harness run --out');
  const other = await folder.command('run', '--out', folder.path, '--config', folder.config, '--duration', '1h');
  t.equal(other.by, 64);
  t.match(other.output, `holds an unfinished run of ${SECONDS} s, not of 1 h`);
  t.ok(isRunning(service), 'the service runs on');

  const { by, output } = await folder.run().ended();
  t.match(output, 'resuming the run in');
  t.match(output, 'is still running');
  const report = folder.report();
  t.equal(by, VERDICT_EXIT[report.verdict], output);
  t.equal(evidence(judgement(report, 'uptime'), 'restarts'), 0, 'the monitoring gap does not count against the service');
  t.ok(report.run.monitoring_gap_seconds > 0, 'it is reported');
  t.ok(report.run.observed_seconds >= SECONDS, 'the run is that much longer');
  t.same(
    folder
      .entries()
      .filter(({ type }) => ['begin', 'resume', 'service', 'end'].includes(type))
      .map(({ type }) => type),
    ['begin', 'service', 'resume', 'end'],
  );
  t.equal((await folder.command('verify', folder.path)).by, 0);
  t.equal((await folder.command('report', folder.path)).by, by, 'the report can be written again');
  const over = await folder.command('run', '--out', folder.path);
  t.equal(over.by, 64, 'the run cannot be overwritten');
  t.match(over.output, /complete\. Choose another folder with --out, or write its report again/);
  t.equal((await folder.command('status', folder.path)).by, 0);
  await areOver([service]);
});

t.test('a run in which the service is killed three times has failed', async (t) => {
  const folder = new RunFolder(t);
  const run = folder.run('--duration', '1h');
  await folder.recorded('minute');
  let service = await folder.servicePid();
  for (let kills = 0; kills < 3; kills += 1) {
    process.kill(service, 'SIGKILL');
    service = await folder.servicePid(service);
    await folder.answers();
  }
  const runs = () => folder.entries().filter((entry) => entry.type === 'service');
  await until('three restarts are recorded', () => runs().reduce((sum, { unseen }) => sum + 1 + unseen, -1) >= 3);
  run.kill('SIGTERM');
  const { by, output } = await run.ended();
  t.equal(by, 1, output);
  const uptime = judgement(folder.report(), 'uptime');
  t.equal(uptime.verdict, 'FAIL');
  t.equal(evidence(uptime, 'restarts'), 3);
  const causes = runs().map(({ cause }) => cause);
  t.same([...new Set(causes.slice(1))], ['signal'], 'with their cause');
  await areOver([service]);
});

t.test('Ctrl-C ends a run with a report; the same command resumes it, and another one stops it', async (t) => {
  const folder = new RunFolder(t);
  const run = folder.run('--duration', '1h');
  await folder.recorded('minute');
  const pids = await folder.pids();
  run.kill('SIGHUP');
  run.kill('SIGINT');
  run.kill('SIGINT');
  const { by, output } = await run.ended();
  t.equal(by, VERDICT_EXIT[folder.report().verdict], output);
  t.match(folder.entries().at(-1), { type: 'end', reason: 'stopped' });
  t.equal(folder.report().run.finished, false);
  await areOver(pids);

  const resumed = folder.run('--duration', '1h');
  await folder.recorded('resume');
  t.equal((await folder.command('stop', folder.path)).by, 0);
  t.equal((await resumed.ended()).by, VERDICT_EXIT[folder.report().verdict]);
  const causes = folder
    .entries()
    .filter((entry) => entry.type === 'service')
    .map(({ cause }) => cause);
  t.same(causes, ['first', 'stopped'], 'a service that was stopped with its run has been restarted');
});

t.test('no process keeps running after the folder was removed', async (t) => {
  const folder = new RunFolder(t);
  const run = folder.run('--duration', '1h');
  await folder.recorded('minute');
  const pids = await folder.pids();
  // Renamed first: a file created meanwhile would make the removal fail.
  renameSync(folder.path, `${folder.path}-removed`);
  rmSync(`${folder.path}-removed`, { recursive: true });
  const { by, output } = await run.ended();
  t.equal(by, 69, output);
  t.match(output, /record\.ndjson was removed/);
  await areOver(pids);
});

t.test('another service is observed by its address', async (t) => {
  const folder = new RunFolder(t);
  const none = await folder.run('--duration', '10s', '--url', 'http://127.0.0.1:1', '--transport', 'off').ended();
  t.equal(none.by, 69, none.output);
  t.match(none.output, /no response from http:\/\/127\.0\.0\.1:1/);
  t.notOk(existsSync(join(folder.path, 'record.ndjson')));

  const service = await startService(t);
  await measured(service);
  const { by, output } = await folder.run('--duration', '10s', '--url', service.url).ended();
  const report = folder.report();
  t.equal(by, VERDICT_EXIT[report.verdict], output);
  t.ok((evidence(judgement(report, 'reliability'), 'received') ?? 0) > 0);
  t.notOk(existsSync(join(folder.path, 'supervisor')), 'no service was started');
  t.ok(isRunning(service.pid), 'nor ended');
});

t.test('usage errors and help are printed', async (t) => {
  const folder = new RunFolder(t);
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
    [['verify', folder.path, '--head', 'abc'], '64 hexadecimal digits'],
  ];
  for (const [args, message] of wrong) {
    const out = args[0] === 'run' ? ['--out', folder.path] : [];
    const { by, output } = await folder.command(...args, ...out);
    t.equal(by, 64, `${args.join(' ')}: ${output}`);
    t.match(output, message);
  }
  const overview = (await folder.command('--help')).output;
  for (const command of ['run', 'start', 'status', 'stop', 'report', 'verify']) {
    const { by, output } = await folder.command(command, '--help');
    t.equal(by, 0);
    t.match(output, /^Exit codes: /m, `${command} --help`);
    t.match(overview, new RegExp(`^ {2}${command} `, 'm'));
  }
  for (const args of [
    ['start'],
    ['stop', `${folder.path}-missing`],
    ['report', `${folder.path}-missing`],
    ['status', `${folder.path}-missing`],
  ]) {
    const { by, output } = await folder.command(...args);
    t.equal(by, 69, `${args.join(' ')}: ${output}`);
    t.notMatch(output, /\n\s+at /, 'in one line');
  }
});
