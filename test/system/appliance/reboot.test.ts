import t from 'tap';
import { stringify } from 'yaml';
import { ALERTING, Appliance, CONFIG, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);
t.jobs = SUITES.length;
const skip = containersUnavailable();

for (const suite of SUITES) {
  t.test(`on ${suite}, after a reboot and after a power cut`, { skip }, async (t) => {
    const appliance = await Appliance.boot(t, { suite, config: ALERTING, disk: { path: STATE, megabytes: 64 } });
    const { machine } = appliance;
    const alert = await appliance.alerted('memory_percent');
    let stored: number[] = [];

    await t.test('a reboot', async (t) => {
      stored = await appliance.history();
      await machine.reboot();
      await appliance.measures();
      t.equal(await machine.show(UNIT, 'ActiveState'), 'active', 'the service is up by itself');
      t.equal(await appliance.restarts(), 0, 'at its first start');
      t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was open still is');
      const history = await appliance.history();
      t.same(history.slice(0, stored.length), stored, 'no sample of before is lost');
      t.ok(history.length > stored.length, 'and there are new ones');
    });

    await t.test('a power cut', async (t) => {
      await machine.write(
        CONFIG,
        stringify({ ...ALERTING, thresholds: { ...ALERTING.thresholds, disk: { warning: 0.01, critical: 99.9 } } }),
      );
      await machine.systemctl('reload', UNIT);
      const fresh = await appliance.alerted('disk_percent');
      await machine.cutPower();
      t.equal(await machine.waitForEnd(1), 'killed');
      await appliance.storeIsWhole(t);

      await machine.bootAgain();
      await appliance.measures();
      t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the old alert is open');
      t.same(await appliance.openAlertIds('disk_percent'), [fresh.alert_id], 'and so is the one that was raised right before the cut');
      const history = await appliance.history();
      t.same(history.slice(0, stored.length), stored, 'what the store had been given before is there');
      await appliance.storeIsWhole(t);
    });
  });
}
