/** A reboot of the machine. The power faults (test/faults) prove power cuts. */
import t from 'tap';
import { ALERTING, Appliance, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);
t.jobs = SUITES.length;
const skip = containersUnavailable();

for (const suite of SUITES) {
  t.test(`on ${suite} the service is up after a reboot, with all its data`, { skip }, async (t) => {
    const appliance = await Appliance.boot(t, { suite, config: ALERTING, disk: { path: STATE, megabytes: 64 } });
    const { machine } = appliance;
    const alert = await appliance.alerted('memory_percent');
    const stored = await appliance.history();
    await machine.reboot();
    await appliance.measures(120);
    t.equal(await machine.show(UNIT, 'ActiveState'), 'active', 'systemd has started it');
    t.equal(await appliance.restarts(), 0, 'with one attempt');
    t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was open still is');
    const history = await appliance.history();
    t.same(history.slice(0, stored.length), stored, 'no earlier sample is lost');
    t.ok(history.length > stored.length, 'and there are new ones');
    await appliance.storeIsWhole(t);
  });
}
