import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { sendRequest, startIn } from '../../testkit/service/rest.ts';
import { ROOT, type RunningService } from '../../testkit/service/service.ts';

// No status is better than the open alerts below it, wherever it is shown.

interface AlertList {
  readonly data: readonly Alert[];
  readonly count: number;
}

const timing = { raise_after_seconds: 0, clear_after_seconds: 3600, sensor_timeout_seconds: 1 };

async function program({ url }: RunningService, command: readonly string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(join(ROOT, 'bin/edge-health'), [...command, '--url', url], (error, stdout) => {
      resolve({ code: (error?.code as number | undefined) ?? 0, stdout });
    });
  });
}

t.test('a CRITICAL temperature that fell before its sensor was lost is CRITICAL everywhere', async (t) => {
  const machine = new MachineTree(t, 'pi5');
  const service = await startIn(t, temporaryFolder(t), {
    config: { publish_frequency: 20, alerts: timing },
    arguments: machine.arguments,
  });
  const open = (...severities: string[]): Promise<AlertList> =>
    service.until<AlertList>('/alerts?resolved=false', ({ data }) =>
      severities.every((one) => data.some(({ severity }) => severity === one)),
    );
  machine.setTemperature(95);
  await open('CRITICAL');
  machine.setTemperature(50);
  await service.until<HealthStatus>('/health', ({ temperature }) => temperature === 50);
  machine.removeSensor();
  await open('CRITICAL', 'ERROR');
  t.match(await service.json('/health'), { temperature: null, status: 'CRITICAL' });
  const document = await service.json<StatusDocument>('/status');
  t.match(document, { status: 'CRITICAL', nodes: [{ status: 'CRITICAL' }], open_alerts: { CRITICAL: 1, ERROR: 1 } });
  const { code, stdout } = await program(service, ['status']);
  t.equal(code, 2);
  t.match(stdout, /^CRITICAL /);
});

t.test('a missing disk path is an ERROR of its own, and hides no other path', async (t) => {
  const folder = temporaryFolder(t);
  const missing = join(folder, 'usb');
  const machine = new MachineTree(t, 'pi5');
  const service = await startIn(t, folder, {
    config: {
      alerts: { ...timing, clear_after_seconds: 0 },
      thresholds: { disk: { warning: 99.8, critical: 99.9 } },
      disk: { paths: ['/', missing] },
    },
    arguments: machine.arguments,
  });
  const { data } = await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 1);
  t.match(data, [{ metric: `disk:${missing}`, severity: 'ERROR', threshold: 1 }]);
  const health = await service.json<HealthStatus>('/health');
  t.type(health.disk_percent, 'number');
  t.equal(health.status, 'ERROR');
  const { disks } = await service.json<StatusDocument>('/status');
  t.match(disks, [
    { path: '/', percent: Number, problem: null },
    { path: missing, percent: null, problem: /^ENOENT/ },
  ]);
  t.equal((await program(service, ['status'])).code, 2);
  mkdirSync(missing);
  t.teardown(() => rmdirSync(missing));
  await service.until<AlertList>('/alerts?resolved=false', ({ count }) => count === 0);
  t.match((await service.json<AlertList>('/alerts')).data, [{ alert_id: data[0]?.alert_id, resolved: true, value: 0 }]);
});

t.test('a disk that is unmounted is missing, also after a restart, and ends no alert', { skip: whyNotMountable() ?? false }, async (t) => {
  const folder = temporaryFolder(t);
  const disk = new SmallDisk(t);
  const machine = new MachineTree(t, 'pi5');
  mkdirSync(join(machine.procRoot, 'self'), { recursive: true });
  symlinkSync('/proc/self/mountinfo', join(machine.procRoot, 'self/mountinfo'));
  const config = {
    alerts: { ...timing, clear_after_seconds: 0 },
    thresholds: { disk: { warning: 99.8, critical: 99.9 } },
    disk: { paths: ['/', disk.folder] },
  };
  disk.fill();
  const service = await startIn(t, folder, { config, arguments: machine.arguments });
  const open =
    (count: number) =>
    (list: AlertList): boolean =>
      list.count === count;
  const [full] = (await service.until<AlertList>('/alerts?resolved=false', open(1))).data;
  t.match(full, { metric: 'disk_percent', severity: 'CRITICAL', value: 100 });
  disk.unmount();
  const both = (await service.until<AlertList>('/alerts?resolved=false', open(2))).data;
  t.match(both, [{ metric: `disk:${disk.folder}`, severity: 'ERROR' }, full]);
  await service.end();

  const restarted = await startIn(t, folder, { config, arguments: machine.arguments });
  await restarted.until<StatusDocument>('/status', ({ publish }) => publish.samples > 3);
  t.same((await restarted.json<AlertList>('/alerts?resolved=false')).data, both);
  const { disks } = await restarted.json<StatusDocument>('/status');
  t.match(disks[1], { path: disk.folder, percent: null, problem: /^nothing is mounted on / });
});

t.test('brown-outs and memory that no program uses are in /status, /metrics and the status page', async (t) => {
  const machine = new MachineTree(t, 'pi4');
  const alarm = join(machine.sysRoot, 'class/hwmon/hwmon1/in0_lcrit_alarm');
  writeFileSync(alarm, '0\n');
  const meminfo = join(machine.procRoot, 'meminfo');
  const pages = 'HugePages_Total: 500\nHugePages_Free: 500\nHugepagesize: 2048 kB\n';
  writeFileSync(meminfo, readFileSync(meminfo, 'utf8').replace(/^Huge.*\n/gm, '') + pages);
  const service = await startIn(t, temporaryFolder(t), { arguments: machine.arguments });
  const power = (undervoltage: boolean, events: number): Promise<StatusDocument> =>
    service.until<StatusDocument>(
      '/status',
      (document) => document.power.undervoltage === undervoltage && document.power.undervoltage_events === events,
    );
  await power(false, 0);
  for (const times of [1, 2]) {
    writeFileSync(alarm, '1\n');
    await power(true, times);
    writeFileSync(alarm, '0\n');
    await power(false, times);
  }
  const document = await service.json<StatusDocument>('/status');
  t.ok(Date.parse(document.power.last_undervoltage ?? '') >= Date.parse(document.started));
  t.match(document.memory, { huge_pages_bytes: 500 * 2 ** 21, huge_pages_free_bytes: 500 * 2 ** 21, zfs_reclaimable_bytes: null });
  const { stdout } = await program(service, ['status']);
  t.match(stdout, /undervoltage 2 times/);
  t.match(stdout, /1\.0 GB of .* huge pages/);
  const { body } = await sendRequest(service, 'GET', '/metrics');
  t.match(body, /^edge_health_undervoltage 0$/m);
  t.match(body, /^edge_health_undervoltage_events_total 2$/m);
  t.match(body, /^edge_health_memory_huge_pages_bytes 1048576000$/m);
});

t.test('status --ports lists every port and socket to which others can send, and who can reach it', async (t) => {
  const domain = await reserveDomain(t);
  const service = await startIn(t, temporaryFolder(t), {
    config: { ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' } },
  });
  // Before the first sample the status is UNKNOWN, and with it the exit code.
  const { ports } = await service.until<StatusDocument>(
    '/status',
    ({ ros, status }) => ros.transport === 'embedded' && status !== 'UNKNOWN',
  );
  const { code, stdout } = await program(service, ['status', '--ports']);
  t.ok(code <= 2, `as without it: ${code}`);
  const rest = new URL(service.url);
  for (const [address, reach, purpose] of [
    [`127.0.0.1:${rest.port}`, 'this host', 'REST API and dashboard'],
    [`239.255.0.1:${7400 + 250 * domain}`, 'the local network', 'ROS 2 discovery, multicast'],
    ['rest.sock', 'this host', 'REST API for programs of this machine'],
    ['control.sock', "the service's user and group", 'edge-health nodes forget'],
  ] as const)
    t.ok(
      stdout.split('\n').some((line) => line.includes(address) && line.includes(` ${reach} `) && line.includes(purpose)),
      `${address}: ${stdout}`,
    );
  t.equal(stdout.trimEnd().split('\n').length, 1 + ports.length);
  t.equal(ports.filter(({ protocol }) => protocol === 'udp').length, 4, 'discovery by multicast and to this one, samples, sending');
  await service.end();
  const ended = await program(service, ['status', '--ports']);
  t.equal(ended.code, 3);
  t.equal(ended.stdout, '');
});
