import { readFileSync } from 'node:fs';
import t from 'tap';
import { ALERTING, Appliance, DEBUGGER, dropIn, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);
t.jobs = 2;
const skip = containersUnavailable();

t.test('a service that crashes at every start ends in "failed"', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'trixie', config: ALERTING });
  const { machine } = appliance;
  const alert = await appliance.alerted('memory_percent');
  const burst = Number(await machine.show(UNIT, 'StartLimitBurst'));
  const began = performance.now();
  // Killed as soon as there is something to kill, as by a fault that comes with the start.
  await machine.sh(
    `while ! systemctl --quiet is-failed ${UNIT}; do systemctl kill --signal=KILL ${UNIT} 2>/dev/null || true; sleep 0.1; done`,
  );
  t.comment(`failed after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  t.equal(await machine.show(UNIT, 'ActiveState'), 'failed');
  const starts = (await machine.journal(UNIT)).split('\n').filter((line) => line.startsWith('Starting ')).length;
  t.ok(starts >= 2 && starts <= burst, `it was started ${starts} times, at most ${burst} are allowed`);
  await new Promise((later) => setTimeout(later, 2500));
  t.equal(await machine.show(UNIT, 'ActiveState'), 'failed', 'and is not started again');
  t.match((await machine.run(['systemctl', 'status', UNIT])).stdout, /Start request repeated too quickly|start-limit-hit|status=9\/KILL/);

  await machine.systemctl('reset-failed', UNIT);
  await machine.systemctl('start', UNIT);
  await appliance.measures();
  t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'started by hand it goes on with the alert of before');
  await appliance.storeIsWhole(t);
});

t.test('a service that takes too much memory is killed and comes back', { skip }, async (t) => {
  const files = { [dropIn('debugger')]: DEBUGGER };
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: ALERTING, files });
  const { machine } = appliance;
  const alert = await appliance.alerted('memory_percent');
  const limit = Number(await machine.show(UNIT, 'MemoryMax'));
  t.ok(limit >= 128e6 && limit <= 1e9, `${limit / 2 ** 20} MiB are allowed`);
  const before = await appliance.history();
  const kills = outOfMemoryKills();
  const beganMs = Date.now();
  await appliance.inject('globalThis.hoard = []; setInterval(() => hoard.push(Buffer.alloc(16 << 20, 1)), 20);');
  const seconds = await appliance.backAfter(beganMs, 60);
  t.comment(`back after ${seconds.toFixed(1)} s`);
  t.ok(outOfMemoryKills() > kills, 'the kernel killed something for want of memory');
  const journal = await machine.journal(UNIT);
  t.match(journal, /Main process exited, code=killed, status=9\/KILL/, 'the service, within its own limit');
  t.equal(await appliance.restarts(), 1, 'systemd restarted it');
  t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was open still is');
  t.same((await appliance.history()).slice(0, before.length), before, 'no sample is lost');
  await appliance.storeIsWhole(t);
});

/** How many processes this machine's kernel has killed for want of memory, containers included. */
function outOfMemoryKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1]);
}
