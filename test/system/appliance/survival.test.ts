import t from 'tap';
import type { Alert } from '../../../src/core/alert.ts';
import { ALERTING, Appliance, DEBUGGER, dropIn, longestGapSeconds, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);
t.jobs = SUITES.length;
const skip = containersUnavailable();

/** What is promised: a service that hangs is back within WatchdogSec and this. */
const PROMISED_SECONDS_OVER_WATCHDOG = 5;
const PROMISED_GAP_SECONDS = 60;

const FAULTS: readonly { what: string; watchdog: boolean; strike: (appliance: Appliance) => Promise<void> }[] = [
  { what: 'SIGKILL', watchdog: false, strike: (appliance) => appliance.signal('KILL') },
  { what: 'SIGSTOP', watchdog: true, strike: (appliance) => appliance.signal('STOP') },
  { what: 'an endless loop in the event loop', watchdog: true, strike: (appliance) => appliance.inject('for (;;);') },
];

for (const suite of SUITES) {
  t.test(`on ${suite} the service survives`, { skip }, async (t) => {
    const appliance = await Appliance.boot(t, { suite, config: ALERTING, files: { [dropIn('debugger')]: DEBUGGER } });
    const { machine } = appliance;
    const watchdogSeconds = await appliance.watchdogSeconds();
    t.ok(watchdogSeconds > 0 && watchdogSeconds <= 30, `it is watched: ${watchdogSeconds} s`);
    const alert = await appliance.alerted('memory_percent');

    for (const { what, watchdog, strike } of FAULTS) {
      await t.test(what, async (t) => {
        const restarts = await appliance.restarts();
        const pid = await appliance.mainPid();
        const beforeMs = Date.now();
        await strike(appliance);
        const seconds = await appliance.backAfter(beforeMs, 60);
        t.comment(`back after ${seconds.toFixed(1)} s`);
        t.ok(seconds <= watchdogSeconds + PROMISED_SECONDS_OVER_WATCHDOG, `${seconds.toFixed(1)} s is not too long`);
        t.not(await appliance.mainPid(), pid, 'another process serves');
        t.equal(await appliance.restarts(), restarts + 1, 'systemd restarted it, once');
        const journal = await machine.journal(UNIT, '--since', `@${beforeMs / 1000}`);
        t.equal(/Watchdog timeout/.test(journal), watchdog, watchdog ? 'the watchdog noticed' : 'no watchdog was needed');
        t.equal(await machine.sh('systemctl is-active edge-health'), 'active');
        t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was open is still open, and the same');
      });
    }

    const history = await appliance.history();
    const gap = longestGapSeconds(history);
    t.comment(`longest gap ${gap.toFixed(1)} s in ${history.length} samples`);
    t.ok(gap < PROMISED_GAP_SECONDS, 'no gap of more than a minute in the history');
    t.equal(new Set(history).size, history.length, 'and nothing twice');
    const { data } = await machine.json<{ data: Alert[] }>('/alerts?changes=true&metric=memory_percent');
    t.same(
      data.map(({ alert_id, resolved }) => [alert_id, resolved]),
      [[alert.alert_id, false]],
      'the alert was raised once in all that time',
    );
    await appliance.storeIsWhole(t);
  });
}
