import t from 'tap';
import { stringify } from 'yaml';
import { ALERTING, Appliance, CONFIG, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);
const skip = containersUnavailable();

/** Two mistakes: in line 2 and in line 4. */
const BROKEN = 'thresholds:\n  memroy: {warning: 50}\nrest:\n  port: http\n';
const MISTAKES = [/edge_health_config\.yaml:2:3:.*memroy.*memory/, /edge_health_config\.yaml:4:9:.*rest\.port/];
const EX_CONFIG = 78;

t.test('a broken configuration', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: ALERTING });
  const { machine } = appliance;
  const alert = await appliance.alerted('memory_percent');
  const pid = await appliance.mainPid();

  await t.test('changes nothing at a reload, which fails and says why', async (t) => {
    await machine.write(CONFIG, BROKEN);
    const reload = await machine.run(['systemctl', 'reload', UNIT]);
    t.not(reload.code, 0, 'systemctl reload fails');
    await machine.until(
      async () => (await appliance.status()).config.problem !== null,
      10,
      () => '/status shows no problem',
    );
    const { config } = await appliance.status();
    const journal = await machine.journal(UNIT);
    for (const mistake of MISTAKES) {
      t.match(journal, mistake, 'the journal shows where');
      t.match(config.problem, mistake, '/status shows where');
    }
    t.match(journal, /not reloaded: the running configuration stays in force/);
    t.equal(await appliance.mainPid(), pid, 'the same process serves');
    const { timestamp } = await appliance.measures();
    await machine.untilJson<{ timestamp: string }>('/health', (health) => health.timestamp > timestamp);
    t.same(
      (await appliance.openAlerts('memory_percent')).map(({ alert_id, threshold }) => [alert_id, threshold]),
      [[alert.alert_id, 0.1]],
      'it goes on judging as before',
    );
  });

  await t.test('is forgotten with the next good one, which applies without a restart', async (t) => {
    const alerts = { raise_after_seconds: 0, clear_after_seconds: 0 };
    await machine.write(CONFIG, stringify({ thresholds: { memory: { warning: 99.8, critical: 99.9 } }, alerts }));
    await machine.systemctl('reload', UNIT);
    await machine.untilJson<{ data: unknown[] }>('/alerts?resolved=false&metric=memory_percent', ({ data }) => data.length === 0);
    t.equal((await appliance.status()).config.problem, null);
    t.equal(await appliance.mainPid(), pid, 'the same process serves');
    t.equal(await appliance.restarts(), 0);
  });

  await t.test('is refused at a start, and not tried again', async (t) => {
    await machine.write(CONFIG, BROKEN);
    const restart = await machine.run(['systemctl', 'restart', UNIT]);
    t.not(restart.code, 0, 'systemctl restart fails');
    t.equal(await machine.show(UNIT, 'ActiveState'), 'failed');
    t.equal(await machine.show(UNIT, 'ExecMainStatus'), String(EX_CONFIG));
    t.equal(await appliance.restarts(), 0, 'systemd does not try it again');
    // Longer than RestartSec.
    await new Promise((later) => setTimeout(later, 2500));
    t.equal(await machine.show(UNIT, 'ActiveState'), 'failed', 'and stays with that');
    const invocation = await machine.show(UNIT, 'InvocationID');
    const journal = await machine.journal(UNIT, `_SYSTEMD_INVOCATION_ID=${invocation}`);
    for (const mistake of MISTAKES) t.match(journal, mistake, 'the journal has file, line, column and key');
    t.match(journal, /not started: the configuration has errors/);
    t.match((await machine.run(['systemctl', 'status', UNIT])).stdout, MISTAKES[1] as RegExp, 'systemctl status shows it');
    t.match(await machine.run(['edge-health', 'check-config', CONFIG]), { code: EX_CONFIG }, 'check-config agrees');
  });

  await t.test('once put right, it runs again with its history', async (t) => {
    await machine.write(CONFIG, stringify(ALERTING));
    await machine.systemctl('start', UNIT);
    await appliance.measures();
    t.ok((await appliance.history()).length > 2);
    await appliance.storeIsWhole(t);
  });
});
