import t from 'tap';
import { stringify } from 'yaml';
import { Appliance, CONFIG, longestGapSeconds, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { EventReader } from '../../../testkit/events.ts';

t.setTimeout(600_000);

t.jobs = 2;
const skip = containersUnavailable();

/** At 50 Hz the store is written to every few seconds. */
const config = (publish_frequency: number, warning: number): Record<string, unknown> => ({
  publish_frequency,
  thresholds: { memory: { warning, critical: 99.9 } },
  alerts: { raise_after_seconds: 0, clear_after_seconds: 0 },
});

t.test('a full state folder stops neither measuring nor serving, and is no reason for the watchdog', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: config(50, 99.8), disk: { path: STATE, megabytes: 24 } });
  const { machine } = appliance;
  const pid = await appliance.mainPid();
  const watchdogSeconds = await appliance.watchdogSeconds();

  // As root: what ext4 reserves for root is gone as well.
  t.not((await machine.run(['dd', 'if=/dev/zero', `of=${STATE}/ballast`, 'bs=64k'])).code, 0, 'the disk is full');
  await machine.write(CONFIG, stringify(config(50, 0.1)));
  await machine.systemctl('reload', UNIT);
  const alert = await appliance.alerted('memory_percent');
  await machine.until(
    async () => (await appliance.status()).storage.state === 'degraded',
    60,
    () => 'the storage is not said to be degraded',
  );
  const full = await appliance.status();
  t.match(full.storage.error, /full|space/i, 'it says what is wrong');
  await machine.until(
    async () => /storage degraded/.test(await machine.show(UNIT, 'StatusText')),
    20,
    () => 'the status line does not say it',
  );
  await pause(watchdogSeconds + 3);
  t.equal(await appliance.mainPid(), pid, 'longer than the watchdog allows the same process goes on');
  t.equal(await appliance.restarts(), 0);
  const still = await appliance.status();
  t.ok(still.publish.samples >= full.publish.samples + watchdogSeconds * 40, 'measuring at the same rate');
  t.ok((await appliance.history()).length > 0, 'and serving');

  await machine.sh(`rm ${STATE}/ballast`);
  await machine.until(
    async () => (await appliance.status()).storage.state === 'ok',
    60,
    () => 'it has not recovered',
  );
  t.equal((await appliance.status()).storage.samples_lost, 0, 'nothing was lost');
  await machine.systemctl('restart', UNIT);
  await appliance.measures();
  t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was raised meanwhile is in the store');
  const { data } = await machine.json<{ data: { timestamp: string }[] }>('/health/history?hours=1&step=1s&limit=10000&order=asc');
  const gap = longestGapSeconds(data.map(({ timestamp }) => Date.parse(timestamp)));
  t.ok(gap < 10, `and the history has no gap: ${gap} s at most, a restart included`);
  await appliance.storeIsWhole(t);
});

t.test('a disk that hangs stops neither measuring nor alerting, and is no reason for the watchdog', { skip }, async (t) => {
  const appliance = await Appliance.boot(t, { suite: 'trixie', config: config(1, 99.8), disk: { path: STATE, megabytes: 24 } });
  const { machine } = appliance;
  const pid = await appliance.mainPid();
  const watchdogSeconds = await appliance.watchdogSeconds();
  const events = await EventReader.open(await machine.url());
  t.teardown(() => events.close());

  await machine.sh(`fsfreeze --freeze ${STATE}`);
  t.teardown(() => machine.run(['fsfreeze', '--unfreeze', STATE]));
  await machine.write(CONFIG, stringify(config(1, 0.1)));
  await machine.systemctl('reload', UNIT);
  await machine.until(
    () => events.alerts().some(({ metric }) => metric === 'memory_percent'),
    10,
    () => 'no alert is published',
  );
  const before = events.health().length;
  await pause(watchdogSeconds + 3);
  t.equal(await appliance.mainPid(), pid, 'longer than the watchdog allows the same process goes on');
  const published = events.health().map(({ timestamp }) => Date.parse(timestamp));
  t.ok(published.length >= before + watchdogSeconds, `${published.length - before} samples were published meanwhile`);
  t.ok(longestGapSeconds(published) < 3, 'one a second');
  t.ok(Date.now() - Date.parse((await appliance.measures()).timestamp) < 3000, 'and /health has the last');
  t.match((await appliance.status()).storage, { state: 'degraded', error: /answer/ }, '/status tells of it');
  const refused = await machine.http('/health/history?hours=1');
  t.equal(refused.status, 503, 'what only the store knows is refused in time');
  t.match(await refused.json(), { code: 'storage_unavailable' });

  await machine.sh(`fsfreeze --unfreeze ${STATE}`);
  await machine.until(
    async () => (await appliance.status()).storage.state === 'ok',
    30,
    () => 'it has not recovered',
  );
  const [alert] = events.alerts().filter(({ metric }) => metric === 'memory_percent');
  const history = await appliance.history();
  await machine.systemctl('restart', UNIT);
  await appliance.measures();
  t.same(await appliance.openAlertIds('memory_percent'), [alert?.alert_id], 'what was published meanwhile is in the store');
  t.same((await appliance.history()).slice(0, history.length), history, 'as are the samples');
  await appliance.storeIsWhole(t);
});

const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));
