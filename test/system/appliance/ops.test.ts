import t, { type Test } from 'tap';
import type { OpsDocument } from '../../../src/http/api/ops-schema.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Appliance, CONFIG, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';

t.setTimeout(900_000);
// These tests spend nearly all of their time waiting for the next minute.
t.jobs = 4;
const skip = containersUnavailable();

const OPS = 'edge-health-ops.service';
/** As often as cron expressions allow. */
const EVERY_MINUTE = {
  // A machine that runs tests is busy; that alone must not be a finding.
  alerts: { raise_after_seconds: 3600 },
  ops: {
    health_check: '* * * * *',
    collect_alerts: '* * * * *',
    check: { clock: false, min_free_megabytes: 1 },
    backup: { reserve_megabytes: 10 },
  },
};
/** A minute, and the delay of a run on a busy machine. */
const SCHEDULE_SECONDS = 240;

type Job = OpsDocument['jobs'][number];

/** Waits until a job is in the wanted state in /status or, if the service is down, in the scheduler's own list. */
async function until(machine: Container, name: string, wanted: (job: Job) => boolean, seconds = SCHEDULE_SECONDS): Promise<Job> {
  let found: Job | undefined;
  await machine.until(
    async () => {
      const { stdout } = await machine.run(['edge-health', 'ops', 'list', '--json']);
      found = (JSON.parse(stdout) as OpsDocument).jobs.find((job) => job.name === name);
      return found !== undefined && wanted(found);
    },
    seconds,
    () => `${name}: ${JSON.stringify(found, null, 1)}`,
  );
  return found as Job;
}

async function rows(machine: Container): Promise<Record<string, string>[]> {
  const text = await machine.sh(`cat ${STATE}/metrics/metrics_*.csv`);
  const [head = '', ...lines] = text.trimEnd().split('\n');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, column) => [head.split(',')[column] ?? '', cell])));
}

/** Checks that everything below the data folder belongs to the service's user, whichever user ran the programs. */
async function ownedByTheService(t: Test, machine: Container): Promise<void> {
  t.equal(await machine.sh(`find ${STATE} ! -user edge-health -o ! -group edge-health`), '', 'all of it belongs to the service');
  t.equal(await machine.sh(`find ${STATE} -perm /027 -type f -perm /007`), '', 'and others may not read it');
}

t.test('the scheduler watches the monitor', { skip }, async (t) => {
  const config = { ...EVERY_MINUTE, ops: { ...EVERY_MINUTE.ops, backup_logs: '* * * * *' } };
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config });
  const { machine } = appliance;

  await t.test('it runs from the first boot on', async (t) => {
    t.equal((await machine.run(['systemctl', 'is-enabled', OPS])).stdout.trim(), 'enabled');
    t.equal(await machine.show(OPS, 'ActiveState'), 'active');
    t.equal(await machine.show(OPS, 'User'), 'edge-health');
    for (const name of ['collect_metrics', 'collect_alerts', 'health_check']) {
      const job = await until(machine, name, ({ last }) => last !== null);
      t.equal(job.last?.trigger, 'schedule', name);
      t.ok((job.last?.exit_code ?? 9) < 2, `${name}: ${job.last?.lines.join('; ')}`);
    }
    const status = await machine.untilJson<StatusDocument>('/status', ({ ops }) => ops.jobs.some(({ runs }) => runs > 0));
    t.equal(status.ops.scheduler.state, 'running', '/status shows them');
    const [row] = await rows(machine);
    t.match(row, { node_name: 'health_monitor', answered: 'true' });
    t.match(await machine.sh(`systemctl status ${OPS}`), /Status: ".+"/);
  });

  await t.test('a scheduled backup, from within the sandbox, is complete', async (t) => {
    const { last } = await until(machine, 'backup_logs', (job) => job.last !== null);
    t.match(last, { status: 'OK', trigger: 'schedule' }, last?.lines.join('\n') ?? '');
    t.notMatch(last?.lines.join('\n'), /left out/, 'the journal as well');
  });

  await t.test('a killed monitor is detected within the schedule', async (t) => {
    const { runs } = await until(machine, 'health_check', () => true);
    await appliance.signal('KILL');
    const { last } = await until(
      machine,
      'health_check',
      (job) => job.runs > runs && /restarted (?:once|\d+ times) since/.test(job.last?.lines.join('\n') ?? ''),
    );
    t.equal(last?.status, 'WARNING', last?.lines.join('\n') ?? '');
  });
});

t.test('a monitor that is not running', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'trixie', config: EVERY_MINUTE });
  const { machine } = appliance;
  await machine.systemctl('stop', UNIT);

  await t.test('is CRITICAL, and a row records that there was no response', async (t) => {
    const { last } = await until(machine, 'health_check', (job) => job.last?.status === 'CRITICAL');
    t.match(last?.lines.join('\n'), /systemctl start edge-health/, 'with what to do');
    await until(machine, 'collect_metrics', ({ last }) => last !== null && last.status !== 'OK');
    t.match((await rows(machine)).at(-1), { node_name: 'health_monitor', answered: 'false', cpu_percent: '' });
  });

  await t.test('is OK again once it runs', async (t) => {
    await machine.systemctl('start', UNIT);
    await appliance.measures();
    const again = await machine.run(['edge-health', 'ops', 'health_check', '--json']);
    t.ok((again.code ?? 9) < 2, again.stdout);
    await ownedByTheService(t, machine);
  });
});

t.test('the scheduler under systemd', { skip }, async (t) => {
  // A minute would be too long to wait.
  const files = { [`/etc/systemd/system/${OPS}.d/watchdog.conf`]: '[Service]\nWatchdogSec=12\n' };
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: EVERY_MINUTE, files });
  const { machine } = appliance;

  await t.test('a hung scheduler is restarted with its earlier state', async (t) => {
    const { runs } = await until(machine, 'collect_metrics', (job) => job.runs > 0);
    const pid = await machine.show(OPS, 'MainPID');
    await machine.sh(`kill -STOP ${pid}`);
    await machine.until(async () => !['0', pid].includes(await machine.show(OPS, 'MainPID')), 120);
    await machine.until(async () => (await machine.show(OPS, 'ActiveState')) === 'active', 120);
    t.match(await machine.journal(OPS), /watchdog/i);
    t.ok((await until(machine, 'collect_metrics', () => true)).runs >= runs, 'its runs are counted on');
  });

  await t.test('a reload applies other schedules, and refuses errors', async (t) => {
    const before = await machine.read(CONFIG);
    await machine.write(CONFIG, before.replace('health_check: "* * * * *"', 'health_check: "17 3 * * *"'));
    await machine.systemctl('reload', OPS);
    await until(machine, 'health_check', ({ schedule }) => schedule === '17 3 * * *');
    await machine.write(CONFIG, before.replace('health_check: "* * * * *"', 'health_check: "61 * * * *"'));
    t.not((await machine.run(['systemctl', 'reload', OPS])).code, 0);
    await machine.until(async () => (await machine.journal(OPS)).includes('not reloaded'), 120);
    const { ops } = await machine.json<StatusDocument>('/status');
    t.equal(ops.jobs.find(({ name }) => name === 'health_check')?.schedule, '17 3 * * *', 'the schedule in force stays');
    await machine.write(CONFIG, before);
    await machine.systemctl('reload', OPS);
  });

  await t.test('after a reboot it continues', async (t) => {
    const { runs } = await until(machine, 'collect_alerts', () => true);
    await machine.reboot();
    await appliance.measures();
    await until(machine, 'collect_alerts', (job) => job.runs > runs);
    await ownedByTheService(t, machine);
    t.equal(await machine.show(OPS, 'NRestarts'), '0');
  });
});

for (const suite of SUITES) {
  t.test(`backup and restore on ${suite}`, { skip }, async (t) => {
    const appliance = await Appliance.boot(t, { suite, config: EVERY_MINUTE });
    const { machine } = appliance;
    await machine.until(async () => (await appliance.history()).length >= 5, 120);
    const known = await appliance.history();

    await t.test('a manual backup is complete', async (t) => {
      const { code, stdout, stderr } = await machine.run(['edge-health', 'ops', 'backup_logs', '--json']);
      t.equal(code, 0, stdout + stderr);
      t.same((JSON.parse(stdout) as { backup: { left_out: unknown[] } }).backup.left_out, [], 'with the journal');
      t.match(await machine.sh(`ls ${STATE}/backups`), /^edge-health_\d{8}T\d{6}Z\.tar\.zst$/);
      await ownedByTheService(t, machine);
    });

    await t.test('the effect of a restore is shown first', async (t) => {
      const shown = await machine.run(['edge-health', 'ops', 'restore_backup', 'latest']);
      t.match(shown.stdout, /--yes/, 'and how to have it done');
      t.equal(await machine.show(UNIT, 'ActiveState'), 'active');
      t.not((await machine.run(['edge-health', 'ops', 'restore_backup', 'latest', '--yes'], { user: 'nobody' })).code, 0, 'only root may');
    });

    await t.test('a lost database is restored', async (t) => {
      await machine.systemctl('stop', UNIT);
      await machine.sh(`rm ${STATE}/edge-health.db*; rm -rf /run/edge-health/*`);
      await machine.systemctl('start', UNIT);
      await appliance.measures();
      const { code, stdout, stderr } = await machine.run(['edge-health', 'ops', 'restore_backup', 'latest', '--yes'], {
        timeoutSeconds: 120,
      });
      t.equal(code, 0, stdout + stderr);
      t.equal(await machine.show(UNIT, 'ActiveState'), 'active');
      t.equal(await machine.show(OPS, 'ActiveState'), 'active');
      const after = await appliance.history();
      // The backup was made after that.
      const expected = known;
      t.same(after.slice(0, expected.length), expected, 'the samples of the backup are there');
      await ownedByTheService(t, machine);
      await appliance.storeIsWhole(t);
    });
  });
}
