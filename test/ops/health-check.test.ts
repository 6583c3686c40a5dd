import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import {
  checkAt,
  type HealthDocument,
  logOf,
  NOWHERE,
  provide,
  provideRecorded,
  type Site,
  siteAt,
} from '../../testkit/ops/health-site.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

/** The machine that runs the tests may be busy and full, and its power supply weak. */
const CALM = { alerts: { raise_after_seconds: 3600 } };
const synchronised = 'echo NTP=yes; echo NTPSynchronized=yes';

async function running(t: Test, config: Record<string, unknown> = {}): Promise<{ site: Site; service: RunningService }> {
  const folder = temporaryFolder(t);
  const machine = new MachineTree(t, 'vm-no-sensors');
  const service = await RunningService.start(folder, {
    config: { node_name: 'robot1', ...CALM, ops: { check: { min_free_megabytes: 0 } }, ...config },
    arguments: machine.arguments,
  });
  t.teardown(() => service.end('SIGKILL'));
  await service.until<{ status: string }>('/status', ({ status }) => status !== 'UNKNOWN', 120);
  const site = siteAt(t, service.url, folder);
  provideRecorded(site, 'systemctl', 'systemctl-running.txt');
  provide(site, 'timedatectl', synchronised);
  return { site, service };
}

/** Run manually, in a process of its own. */
function byHand(site: Site, configFile: string, ...parameters: readonly string[]) {
  const argv = ['--disable-warning=ExperimentalWarning', join(ROOT, 'dist/main.cjs'), 'ops', 'health_check'];
  return spawnSync(process.execPath, [...argv, '--config', configFile, ...parameters], {
    encoding: 'utf8',
    // NODE_OPTIONS of tap would write into the checkout.
    env: { ...process.env, PATH: `${site.programs}:${process.env['PATH']}`, NODE_OPTIONS: '' },
  });
}

t.test('a service that runs, hangs and is killed is reported', async (t) => {
  const { site, service } = await running(t);

  await t.test('a healthy service is reported and logged', (t) => allIsWell(t, site));
  await t.test('the check runs manually, as a process', (t) => runByHand(t, site, service.configFile));
  await t.test('a service that hangs, is killed and is restarted is reported', (t) => hangsAndIsKilled(t, site, service));
});

async function allIsWell(t: Test, site: Site): Promise<void> {
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
  t.match(first.lines.slice(1), [/^NOTE {2}backup: none yet/], 'beyond that only what is worth a line');
  t.ok((await checkAt(site, { options: { all: true } })).lines.length > 10);
  t.same((await checkAt(site, { options: { quiet: true } })).lines, []);

  const log = logOf(site).split('\n');
  t.equal(log.length, 4, 'a line a run');
  t.match(log[0], /^\d{4}-\d\d-\d\dT[\d:.]+Z OK {2}\d+ checks \(schedule\)$/);
  t.equal(statSync(join(site.dataFolder, 'logs')).mode & 0o777, 0o750);

  // Backups are recognised by their names; incomplete ones have other names.
  mkdirSync(join(site.dataFolder, 'backups'));
  const stamp = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(1)}.tar.zst.partial`), '');
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(30)}.tar.zst`), '');
  t.match((await checkAt(site)).of('backup'), { status: 'WARNING', message: /30 h old/ });
  t.equal((await checkAt(site, { more: { backup_logs: 'off' } })).of('backup'), undefined);
  writeFileSync(join(site.dataFolder, `backups/edge-health_${stamp(1)}.tar.zst`), '');
  t.match((await checkAt(site)).of('backup'), { status: 'OK', message: /1 h old/ });
  t.notOk(process.getActiveResourcesInfo().includes('Timeout'), 'no timer is left');
}

async function runByHand(t: Test, site: Site, configFile: string): Promise<void> {
  const checked = byHand(site, configFile, '--json');
  t.equal(checked.status, 1, checked.stderr);
  const document = JSON.parse(checked.stdout) as HealthDocument;
  t.match(document, { status: 'WARNING', trigger: 'manual', summary: /^1 of \d+ checks: scheduler$/ });
  t.match(document.checks[0], { name: 'scheduler', status: 'WARNING', remedy: /ops run/, measured: { state: 'never' } });

  const written = (): string => readFileSync(join(site.dataFolder, 'ops/health_check.json'), 'utf8') + logOf(site);
  const before = written();
  t.match(byHand(site, configFile, '--dry-run').stdout, /^WARNING {2}1 of \d+ checks: scheduler\nWARNING {2}scheduler: not running/);
  t.equal(written(), before, '--dry-run writes nothing');
}

t.test('alerts and nodes are reported', async (t) => {
  const { service, site } = await running(t, {
    thresholds: { memory: { warning: 0.1, critical: 0.2 } },
    alerts: { raise_after_seconds: 0 },
  });
  await service.until<{ open_alerts: { CRITICAL: number } }>('/status', ({ open_alerts }) => open_alerts.CRITICAL > 0, 120);
  provide(site, 'ros2', 'echo /cell/arm; echo /robot1');
  const checked = await checkAt(site, { trigger: 'manual', check: { nodes: ['robot1', 'arm', 'leg'] } });
  t.equal(checked.status, 'CRITICAL');
  t.match(checked.of('alerts'), {
    status: 'CRITICAL',
    // The load of this machine may raise another alert.
    message: /^\d CRITICAL(, \d WARNING)? open, such as .*robot1 memory_percent \d+(\.\d+)? \(0\.2 allowed\)/,
  });
  t.match(checked.of('node robot1'), { status: 'OK' });
  t.match(checked.of('node arm'), { status: 'CRITICAL', message: /on the graph but sends nothing/ });
  t.match(checked.of('node leg'), { status: 'CRITICAL', message: /not on the graph/ });

  const shown = await checkAt(site, { trigger: 'manual' });
  t.match(shown.of('node robot1'), { status: 'OK', message: /, \d+\.\d s ago$/ });
  t.ok(
    shown.lines.some((line) => line.startsWith('NOTE  node robot1: ')),
    'nodes of /status are shown where none is configured',
  );

  const before = logOf(site);
  const otherMachine = await checkAt(site, { options: { url: service.url } });
  t.match(otherMachine.of('node robot1'), { status: 'OK' });
  t.equal(otherMachine.of('history'), undefined);
  t.equal(logOf(site), before, 'with --url nothing is logged about this machine');
});

async function hangsAndIsKilled(t: Test, site: Site, service: RunningService): Promise<void> {
  service.process.kill('SIGSTOP');
  provide(site, 'timedatectl', 'exec sleep 600');
  const hung = await checkAt(site, { check: { nodes: ['robot1'] } });
  t.match(hung.of('service'), { status: 'CRITICAL', message: /its unit is active, but there is no response .*no response within 6 s/ });
  t.match(hung.of('node robot1'), { status: 'UNKNOWN' });
  t.match(hung.of('clock'), { status: 'UNKNOWN', message: /timedatectl show: no response within 5 s/ });
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
  t.match((await checkAt(site)).of('unit edge-health'), { status: 'OK' }, 'reported once');
  t.match(
    logOf(site),
    /CRITICAL {2}unit edge-health: it was killed[\s\S]*WARNING {2}unit edge-health: restarted once[\s\S]*OK {2}unit edge-health: runs since/,
  );
}

t.test('an aborted run reports that it was aborted', async (t) => {
  const site = siteAt(t, NOWHERE);
  mkdirSync(site.dataFolder);
  const started = join(site.folder, 'started');
  provide(site, 'systemctl', `: >'${started}'; exec sleep 600`);
  const ending = new AbortController();
  const checking = checkAt(site, { signal: ending.signal });
  await until('a check hangs', () => existsSync(started));
  ending.abort(new Error('the deadline is over'));
  const { status, of } = await checking;
  t.not(status, 'OK');
  t.match(of('unit') ?? of('unit edge-health'), { status: 'UNKNOWN', message: /the deadline is over/ });
});

t.test('unexpected output of a container engine is reported', async (t) => {
  const site = siteAt(t, NOWHERE);
  mkdirSync(site.dataFolder);
  provideRecorded(site, 'systemctl', 'systemctl-not-installed.txt');
  provide(site, 'docker', 'echo "[]"; echo "error: no such object: web" >&2; exit 1');
  provide(site, 'podman', 'echo "Emulate Docker CLI using podman."');
  const checked = await checkAt(site, { check: { containers: ['web'] } });
  t.match(checked.of('container web'), { status: 'UNKNOWN', message: /podman: / }, 'other output is not taken for an answer');
});

t.test('containers are shown if none is configured', async (t) => {
  const site = siteAt(t, NOWHERE);
  mkdirSync(site.dataFolder);
  mkdirSync(join(site.folder, '.local/share/containers'), { recursive: true });
  provideRecorded(site, 'systemctl', 'systemctl-not-installed.txt');
  const recorded = `${ROOT}/testkit/fixtures/health-check/podman-sick.json`;
  provide(site, 'podman', `case "$*" in 'ps --all --quiet --no-trunc') echo 0123;; *'-- 0123') exec cat '${recorded}';; *) exit 1;; esac`);
  provide(site, 'docker', 'echo "permission denied while trying to connect" >&2; exit 1');
  const shown = await checkAt(site, { trigger: 'manual' });
  t.match(shown.of('container sick'), { status: 'OK', message: 'running in podman, unhealthy' });
  t.match(shown.of('containers of docker'), { status: 'OK', message: 'not listed (permission denied while trying to connect)' });
  t.equal((await checkAt(site)).of('container sick'), undefined, 'not by the scheduler: each engine costs 35 ms of CPU');
  provide(site, 'podman', 'exit 0');
  t.notOk((await checkAt(site, { trigger: 'manual' })).document.checks.some(({ name }) => name.startsWith('container ')));
});
