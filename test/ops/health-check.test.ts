import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ROOT, RunningService } from '../../testkit/service.ts';
import {
  checkAt,
  configure,
  environmentOf,
  type HealthDocument,
  logOf,
  NOWHERE,
  place,
  provide,
  provideRecorded,
  type Site,
  siteAt,
} from './support/health-context.ts';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

/** The machine that runs the tests may be busy, hot and full. */
const CALM = { alerts: { raise_after_seconds: 3600 } };
const synchronised = 'echo NTP=yes; echo NTPSynchronized=yes';

async function running(t: Test, config: Record<string, unknown> = {}): Promise<{ site: Site; service: RunningService }> {
  const folder = place(t);
  const service = await RunningService.start(folder, { config: { node_name: 'robot1', ...CALM, ...config } });
  t.teardown(() => service.end('SIGKILL'));
  await service.until<{ status: string }>('/status', ({ status }) => status !== 'UNKNOWN');
  const site = siteAt(folder, service.url);
  provideRecorded(site, 'systemctl', 'systemctl-running.txt');
  provide(site, 'timedatectl', synchronised);
  return { site, service };
}

/** By hand, in a process of its own. */
function byHand(site: Site, args: readonly string[], more: { uid?: number; config?: string } = {}) {
  const argv = [
    '--disable-warning=ExperimentalWarning',
    join(ROOT, 'ops/main.ts'),
    'health_check',
    '--config',
    more.config ?? configure(site),
    ...args,
  ];
  const { status, stderr, stdout } = spawnSync(process.execPath, argv, {
    encoding: 'utf8',
    env: { ...environmentOf(site), NODE_OPTIONS: '' }, // tap's own would write into the checkout.
    ...(more.uid === undefined ? {} : { uid: more.uid, gid: more.uid }),
  });
  return { status, stdout, stderr };
}

t.test('all is well, is told and is written down', async (t) => {
  const { site } = await running(t);
  const first = await checkAt(site, { check: { nodes: ['robot1'] } });
  t.equal(first.status, 'OK', JSON.stringify(first.lines));
  t.match(first.lines[0], /^OK {2}\d+ checks$/);
  for (const name of [
    'unit edge-health',
    'unit edge-health@sensor_node',
    'service',
    'alerts',
    'storage',
    'publish rate',
    'configuration',
    'ROS',
    'clock',
    'node robot1',
    'disk /',
    'history',
  ])
    t.match(first.of(name), { status: 'OK' }, name);
  t.type(first.of('service')?.measured['answer_milliseconds'], 'number');
  t.match(first.lines.slice(1), [/^OK {2}backup: there is none yet/], 'beyond that only what is worth a line');
  t.ok((await checkAt(site, { options: { all: true } })).lines.length > 10);
  t.same((await checkAt(site, { options: { quiet: true } })).lines, []);

  const log = logOf(site).split('\n');
  t.equal(log.length, 4, 'a line a run');
  t.match(log[0], /^\d{4}-\d\d-\d\dT[\d:.]+Z OK {2}\d+ checks \(schedule\)$/);
  t.equal(statSync(join(site.dataFolder, 'logs')).mode & 0o777, 0o750);

  // Backups are known by their names; what is half-written has another.
  mkdirSync(join(site.dataFolder, 'backups'));
  const stamp = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(1)}.tar.zst.partial`), '');
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(30)}.tar.zst`), '');
  t.match((await checkAt(site)).of('backup'), { status: 'WARNING', message: /30 h old/ });
  t.equal((await checkAt(site, { more: { backup_logs: 'off' } })).of('backup'), undefined);
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(1)}.tar.zst`), '');
  t.match((await checkAt(site)).of('backup'), { status: 'OK', message: /1 h old/ });
});

t.test('it costs little', async (t) => {
  const { site } = await running(t);
  await checkAt(site);
  const before = process.cpuUsage();
  for (let run = 0; run < 10; run += 1) await checkAt(site);
  const { system, user } = process.cpuUsage(before);
  const milliseconds = (system + user) / 10_000;
  t.comment(`${milliseconds.toFixed(1)} ms of CPU a run in this process, its configuration read each time`);
  t.ok(milliseconds < 150, `${milliseconds} ms`);
  t.notOk(process.getActiveResourcesInfo().includes('Timeout'), 'no timer is left');
});

t.test('by hand, as a process', async (t) => {
  const { site } = await running(t);
  const checked = byHand(site, ['--json']);
  t.equal(checked.status, 1, checked.stderr);
  const document = JSON.parse(checked.stdout) as HealthDocument;
  t.match(document, { status: 'WARNING', trigger: 'manual', summary: /^1 of \d+ checks: scheduler$/ });
  t.match(document.checks[0], { name: 'scheduler', status: 'WARNING', remedy: /ops run/, measured: { state: 'never' } });
  t.match(byHand(site, []).stdout, /^WARNING {2}1 of \d+ checks: scheduler\nWARNING {2}scheduler: it does not run/);
  t.match(byHand(site, ['--nonsense']), { status: 3, stderr: /--help/ });

  const before = readFileSync(join(site.dataFolder, 'ops/health_check.json'), 'utf8') + logOf(site);
  byHand(site, ['--dry-run']);
  t.equal(readFileSync(join(site.dataFolder, 'ops/health_check.json'), 'utf8') + logOf(site), before, '--dry-run writes nothing');
});

t.test('users', { skip: !isRoot && 'needs root, to be others' }, async (t) => {
  const folder = place(t);
  chmodSync(folder, 0o755);
  const site = siteAt(folder, NOWHERE);
  provideRecorded(site, 'systemctl', 'systemctl-running.txt');
  mkdirSync(site.dataFolder, { mode: 0o700 });
  chownSync(site.dataFolder, NOBODY, NOBODY);
  const config = configure(site);
  t.equal(byHand(site, [], { config }).status, 2);
  const made = [join(site.dataFolder, 'logs'), join(site.dataFolder, 'ops'), join(site.dataFolder, 'ops/health_check.json')];
  made.push(...readdirSync(made[0] as string).map((name) => join(site.dataFolder, 'logs', name)));
  t.equal(made.length, 4);
  t.same(
    made.map((path) => statSync(path).uid),
    [NOBODY, NOBODY, NOBODY, NOBODY],
    'what root writes belongs to the owner of the folder',
  );

  chownSync(site.dataFolder, 0, 0);
  const { status, stdout, stderr } = byHand(site, ['--json', '--dry-run'], { uid: NOBODY, config });
  t.equal(status, 2, stderr);
  const { checks } = JSON.parse(stdout) as HealthDocument;
  t.match(
    checks.find(({ name }) => name === 'backup'),
    { status: 'UNKNOWN', remedy: /as root/ },
    'who may not look is told so',
  );
});

t.test('alerts and nodes', async (t) => {
  const { service, site } = await running(t, {
    thresholds: { memory: { warning: 0.1, critical: 0.2 } },
    alerts: { raise_after_seconds: 0 },
  });
  await service.until<{ open_alerts: { CRITICAL: number } }>('/status', ({ open_alerts }) => open_alerts.CRITICAL > 0);
  provide(site, 'ros2', 'echo /cell/arm; echo /robot1');
  const checked = await checkAt(site, { trigger: 'manual', check: { nodes: ['robot1', 'arm', 'leg'] } });
  t.equal(checked.status, 'CRITICAL');
  t.match(checked.of('alerts'), {
    status: 'CRITICAL',
    message: /^\d critical open, such as .*robot1 memory_percent \d+(\.\d+)? \(0\.2 allowed\)/,
  });
  t.match(checked.of('node robot1'), { status: 'OK' });
  t.match(checked.of('node arm'), { status: 'CRITICAL', message: /on the graph but sends nothing/ });
  t.match(checked.of('node leg'), { status: 'CRITICAL', message: /not on the graph/ });
});

t.test('a service that hangs, and is killed', async (t) => {
  const { site, service } = await running(t);
  t.equal((await checkAt(site)).status, 'OK');
  service.process.kill('SIGSTOP');
  provide(site, 'timedatectl', 'exec sleep 600');
  const hung = await checkAt(site, { check: { nodes: ['robot1'] } });
  t.match(hung.of('service'), { status: 'CRITICAL', message: /its unit is active, but it does not answer .*no answer within 6 s/ });
  t.match(hung.of('node robot1'), { status: 'UNKNOWN' });
  t.match(hung.of('clock'), { status: 'UNKNOWN', message: /timedatectl show gave no answer within 5 s/ });
  t.match(hung.of('disk /'), { status: 'OK' }, 'a check that hangs costs that check');
  provide(site, 'timedatectl', synchronised);
  await service.end('SIGKILL');
  provideRecorded(site, 'systemctl', 'systemctl-auto-restart.txt');
  const killed = await checkAt(site);
  t.match(killed.of('unit edge-health'), { status: 'CRITICAL', message: 'it was killed, and is about to be restarted' });
  t.match(killed.of('service'), { status: 'CRITICAL', message: /ECONNREFUSED/, remedy: /systemctl status edge-health/ });

  provideRecorded(site, 'systemctl', 'systemctl-restarted.txt');
  provideRecorded(site, 'journalctl', 'journal.ndjson');
  const restarted = await checkAt(site);
  t.match(restarted.of('unit edge-health'), {
    status: 'WARNING',
    message: /^restarted once since the last check \(.*\); 1 watchdog kill in 24 h$/,
  });
  t.match((await checkAt(site)).of('unit edge-health'), { status: 'OK' }, 'told once');
  t.match(
    logOf(site),
    /CRITICAL {2}unit edge-health: it was killed[\s\S]*WARNING {2}unit edge-health: restarted once[\s\S]*OK {2}unit edge-health: runs since/,
  );
});

t.test('a run that is ended says so, and soon', async (t) => {
  const site = siteAt(place(t), NOWHERE);
  mkdirSync(site.dataFolder);
  provide(site, 'systemctl', 'exec sleep 600');
  const ending = new AbortController();
  setTimeout(() => ending.abort(new Error('the deadline is over')), 300);
  const began = performance.now();
  const { status, of } = await checkAt(site, { signal: ending.signal });
  t.not(status, 'OK');
  t.match(of('unit') ?? of('unit edge-health'), { status: 'UNKNOWN', message: /the deadline is over/ });
  t.ok(performance.now() - began < 7000);
});
