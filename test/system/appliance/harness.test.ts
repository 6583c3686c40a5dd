import t, { type Test } from 'tap';
import type { SealedEntry } from '../../../harness/record/chain.ts';
import type { ReportDocument } from '../../../harness/report/document.ts';
import { Appliance, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { builtPackage, repackaged } from '../../../testkit/container/package.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';

t.setTimeout(900_000);
const skip = containersUnavailable();

const HARNESS = 'edge-health-harness.service';
const OUT = `${STATE}/reports/test`;
/** A machine that runs tests is busy; that alone must raise no alert. */
const CONFIG = { alerts: { raise_after_seconds: 3600 }, ops: { check: { clock: false } } };

const harness = (machine: Container, ...args: string[]) => machine.run(['edge-health', 'harness', ...args], { timeoutSeconds: 300 });

async function entries(machine: Container): Promise<SealedEntry[]> {
  const text = await machine.sh(`cat ${OUT}/record.ndjson 2>/dev/null || true`);
  return text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as SealedEntry);
}

async function recorded(machine: Container, wanted: (entries: SealedEntry[]) => boolean, seconds = 120): Promise<void> {
  let found: SealedEntry[] = [];
  await machine
    .until(
      async () => {
        found = await entries(machine);
        return wanted(found);
      },
      seconds,
      () => found.map((entry) => JSON.stringify(entry)).join('\n'),
    )
    .catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await machine.journal(HARNESS)}`);
    });
}

async function ownedByTheService(t: Test, machine: Container): Promise<void> {
  const folders = `${STATE}/harness ${STATE}/reports`;
  t.equal(
    await machine.sh(`find ${folders} ! -user edge-health -o ! -group edge-health -o -perm /007`),
    '',
    'all of it is of the service alone',
  );
}

t.test('a run is resumed after a reboot, with causes from systemd', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: CONFIG });
  const { machine } = appliance;

  await t.test('nothing is observed unless requested', async (t) => {
    t.equal((await machine.run(['systemctl', 'is-enabled', HARNESS])).stdout.trim(), 'disabled');
    t.equal((await machine.run(['systemctl', 'start', HARNESS])).code, 0, 'a start without a request is none');
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'inactive');
    const status = await harness(machine, 'status');
    t.match(status, { code: 69, stderr: /edge-health harness start/ });
    const stop = await harness(machine, 'stop');
    t.match(stop, { code: 69, stderr: /no run is in progress/ });
    const nobody = await machine.run(['edge-health', 'harness', 'start'], { user: 'nobody' });
    t.match(nobody, { code: 69, stderr: /sudo edge-health harness start/ });
    const outside = await harness(machine, 'start', '--out', '/root/report');
    t.match(outside, { code: 64, stderr: /allowed: a folder below \/var\/lib\/edge-health/ });
  });

  await t.test('start begins a run, and systemctl status shows it', async (t) => {
    const started = await harness(machine, 'start', '--duration', '1h', '--out', OUT);
    t.equal(started.code, 0, `${started.stdout}${started.stderr}${await machine.journal(HARNESS)}`);
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'active');
    t.equal(await machine.show(HARNESS, 'User'), 'edge-health');
    t.match(await machine.sh(`systemctl status ${HARNESS}`), /Status: ".* of .*\(\d+\.\d %\).*restart/);
    t.match(await harness(machine, 'start'), { code: 75, stderr: /a run is in progress in \/var\/lib\/edge-health\/reports\/test/ });
    t.match(await harness(machine, 'status'), { code: 0, stdout: /process \d+ observes/ });
  });

  await t.test('the run is resumed after a reboot, and the cause of the new run of the service is known', async (t) => {
    await machine.reboot();
    await appliance.measures();
    await recorded(machine, (found) => found.some(({ type }) => type === 'resume'));
    const [, second] = (await entries(machine)).filter((entry) => entry.type === 'service');
    t.match(second, { cause: 'reboot' });
    t.ok(
      (await entries(machine)).some((entry) => entry.type === 'end' && entry.reason === 'stopped'),
      'it had ended in order',
    );
  });

  await t.test('a killed service does not end the run', async (t) => {
    const pid = await machine.show(HARNESS, 'MainPID');
    await appliance.signal('KILL');
    await recorded(machine, (found) => found.filter(({ type }) => type === 'service').length >= 3);
    const third = (await entries(machine)).filter((entry) => entry.type === 'service')[2];
    t.match(third, { cause: 'signal', detail: /SIGKILL/ });
    t.match(third?.invocation, /^[0-9a-f]{32}$/);
    t.equal(await machine.show(HARNESS, 'MainPID'), pid);
  });

  await t.test('the report contains the restarts and the time without an observer', async (t) => {
    const stopped = await harness(machine, 'stop');
    t.equal(stopped.code, 0, stopped.stderr);
    const report = JSON.parse(await machine.read(`${OUT}/report.json`)) as ReportDocument;
    t.match(report, { run: { node_name: 'health_monitor' }, record: { torn_lines: 0 } });
    t.comment(`the harness took ${((report.run.harness?.resident_bytes ?? 0) / 1e6).toFixed(1)} MB`);
    const uptime = report.judgements.find(({ criterion }) => criterion === 'uptime');
    t.equal(uptime?.evidence.find(({ label }) => label === 'restarts')?.value, 2);
    t.ok(report.run.monitoring_gap_seconds > 0, 'the reboot is a monitoring gap');
    t.match(report.run.how.join('\n'), UNIT);
    const memory = report.judgements.find(({ criterion }) => criterion === 'performance');
    t.match(memory?.summary, /control group/, 'by what the kernel counts');
    await ownedByTheService(t, machine);
    t.equal((await harness(machine, 'verify', OUT)).code, 0);
  });

  await t.test('when a run is complete the unit is inactive, whatever the verdict', async (t) => {
    await machine.sh(`rm -r ${OUT}`);
    const started = await harness(machine, 'start', '--duration', '10s', '--out', OUT);
    t.equal(started.code, 0, started.stderr);
    await machine.until(async () => (await machine.show(HARNESS, 'ActiveState')) === 'inactive', 240);
    t.equal(await machine.show(HARNESS, 'Result'), 'success', await machine.journal(HARNESS));
    const report = JSON.parse(await machine.read(`${OUT}/report.json`)) as ReportDocument;
    t.equal(report.run.finished, true);
    t.equal((await harness(machine, 'verify', OUT)).code, 0);
    t.match(await harness(machine, 'status'), { code: 0, stdout: /^complete/ });
    t.match(await harness(machine, 'status', OUT), { code: 0 });
    const reported = await harness(machine, 'report');
    t.ok((reported.code ?? 9) <= 2, 'which is a verdict');
    await ownedByTheService(t, machine);
    t.equal((await machine.run(['systemctl', 'start', HARNESS])).code, 0);
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'inactive', 'nothing is left to do');
  });

  await t.test('stop ends a run early', async (t) => {
    const started = await harness(machine, 'start');
    t.equal(started.code, 0, started.stderr);
    const out = /reports: (\S+)/.exec(started.stdout)?.[1] ?? '';
    t.match(out, /^\/var\/lib\/edge-health\/reports\/harness-\d{8}T\d{6}Z$/);
    await machine.systemctl('restart', UNIT);
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'active', 'what stops the monitor does not stop it');
    const stopped = await harness(machine, 'stop');
    t.equal(stopped.code, 0, stopped.stderr);
    t.match(await machine.sh(`ls ${out}`), /report\.html/);
    t.equal((await machine.run(['systemctl', 'is-enabled', HARNESS])).stdout.trim(), 'disabled');
    t.match(await harness(machine, 'stop'), { code: 69 });
    await ownedByTheService(t, machine);
  });

  await t.test('an upgrade is a monitoring gap of seconds, and removing the package ends the run', async (t) => {
    await machine.sh(`rm -r ${OUT}`);
    t.equal((await harness(machine, 'start', '--out', OUT)).code, 0);
    const { file, version } = await builtPackage();
    await machine.copyIn(await repackaged(file, { version: '99.0.0' }, temporaryFolder(t)), '/root/edge-health.deb');
    const upgrade = await machine.run(['dpkg', '-i', '/root/edge-health.deb'], { timeoutSeconds: 300 });
    t.equal(upgrade.code, 0, upgrade.stderr);
    const isUpgrade = (entry: SealedEntry): boolean =>
      entry.type === 'service' && entry.cause === 'upgrade' && entry.detail === `${version} → 99.0.0`;
    const isResume = (entry: SealedEntry): boolean => entry.type === 'resume' && entry.observer.version === '99.0.0';
    await recorded(machine, (found) => found.some(isUpgrade) && found.some(isResume));
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'active');
    const removal = await machine.run(['dpkg', '-r', 'edge-health'], { timeoutSeconds: 300 });
    t.equal(removal.code, 0, removal.stderr);
    t.match((await entries(machine)).at(-1), { type: 'end', reason: 'stopped' });
    t.match(await machine.sh(`ls ${OUT}`), /report\.html/, 'its report stays');
  });
});
