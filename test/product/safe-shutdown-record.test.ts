import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import t from 'tap';
import { isoUtc } from '../../src/core/time/time.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { caller, executable, Scene, TIMEOUT_SECONDS } from '../../testkit/service/safe-shutdown.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

// Tests what is recorded of each call, and that recording can neither fill the disk nor delay anything.

t.test('every call is recorded, refused ones too, and still listed after a restart', async (t) => {
  const scene = await Scene.start(t);
  await scene.call({ timeout: Number.POSITIVE_INFINITY, requested_by: 'x'.repeat(10_000) });
  scene.hook('10-fails', 'exit 1');
  await scene.call({ reason: 'MANUAL', requested_by: 'Zoë' });
  await scene.ended();
  await scene.call({ reason: 'nonsense' }, caller({ address: '192.0.2.7', local: false }));
  await scene.stop();
  const next = await Scene.start(t, { folder: scene.folder });
  const records = await next.records();
  t.match(records, [
    { outcome: 'refused', reason: 'nonsense', address: '192.0.2.7', message: /not accepted/, calls: 1 },
    {
      outcome: 'aborted',
      reason: 'MANUAL',
      requested_by: 'Zoë',
      timeout: TIMEOUT_SECONDS,
      address: '127.0.0.1',
      port: 40_000,
      user: 'robot',
      step: 'hooks',
      ended: /^2/,
    },
    { outcome: 'refused', timeout: null, message: /timeout: found Infinity/ },
  ]);
  t.equal(records[2]?.requested_by.length, 128);
  const status = await next.shutdown.status();
  t.match(status, { state: 'aborted', reason: 'MANUAL', requested_by: 'Zoë', message: /10-fails/, accepted: 0, refused: 0 });
  t.match(
    status.requests,
    records.map(({ boot_id: _, ...request }) => request),
  );
  t.notOk('boot_id' in (status.requests[0] ?? {}));
});

t.test('if the service is killed during a shutdown, the next one records that it was interrupted', async (t) => {
  const scene = await Scene.start(t);
  await scene.stop();
  executable(`${scene.hooks}/10-waits`, 'echo $$ > "$0.pid"; exec sleep 600');
  const program = `${ROOT}/testkit/service/shutdown-program.ts`;
  const child = spawn(process.execPath, [program, scene.folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const pidFile = `${scene.hooks}/10-waits.pid`;
  await until('its hook runs', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'));
  child.kill('SIGKILL');
  await exited;
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL'); // As systemd ends all processes of a service.
  rmSync(`${scene.hooks}/10-waits`);
  const next = await Scene.start(t, { folder: scene.folder });
  const interrupted = { state: 'interrupted', reason: 'EMERGENCY', requested_by: 'killed', step: 'hooks' };
  t.match(await next.shutdown.status(), { ...interrupted, message: 'interrupted: the service ended during the step hooks' });
  t.ok(next.logged.some(({ level, message }) => level === 'warning' && message.includes('interrupted')));
  t.equal((await next.call({ reason: 'EMERGENCY' })).success, true, 'and it stands in nobody’s way');
  await next.ended();
  await next.stop();
  const third = await Scene.start(t, { folder: scene.folder });
  t.match(
    await third.records(),
    [{ outcome: 'completed' }, { outcome: 'interrupted', requested_by: 'killed' }],
    'reported once and for all',
  );
});

t.test('a call during the start of the service is not mistaken for one of an earlier run', async (t) => {
  const scene = new Scene(t);
  await scene.store.store.start();
  scene.heldHook('10-waits');
  t.equal((await scene.call()).success, true);
  await scene.shutdown.start();
  t.match(await scene.shutdown.status(), { state: 'in_progress', requests: [{ outcome: 'in_progress' }] });
  scene.release();
  t.equal((await scene.ended()).state, 'completed');
  await scene.stop();
  t.notOk(scene.logged.some(({ message }) => message.includes('interrupted')));
});

t.test('in a flood of calls each one is counted, and none is queued', async (t) => {
  const scene = await Scene.start(t, { settings: { max_requests_per_minute: 10 } });
  const CALLS = 2000;
  const long = 'y'.repeat(10_000);
  for (let n = 0; n < CALLS; n += 1) {
    const reply = await scene.call(
      { reason: long, requested_by: `caller ${n} ${long}`, timeout: n },
      caller({ address: `10.0.${n % 256}.1`, local: n % 2 === 0 }),
    );
    if (reply.success || reply.message.length > 1000) t.fail(`call ${n}: ${JSON.stringify(reply).slice(0, 200)}`);
  }
  t.ok(scene.logged.length < 100, `${scene.logged.length} lines in the log`);
  await scene.shutdown.stop();
  const records = await scene.records();
  t.ok(records.length <= 62, `${records.length} records`);
  t.equal(
    records.reduce((sum, { calls }) => sum + calls, 0),
    CALLS,
  );
  t.ok(Math.max(...records.map((record) => JSON.stringify(record).length)) < 1500);
  t.match(await scene.shutdown.status(), { refused: CALLS, accepted: 0 });
  t.match(records[0]?.message, /calls refused in a burst; the last: /);
});

t.test('a full disk delays no shutdown, and its record is kept', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const scene = await Scene.start(t, { dataPath: disk.folder });
  const record = (n: number): void => {
    const timestampMs = Date.now() - 60_000 + n;
    const status = {
      cpu_percent: 1,
      memory_percent: 2,
      disk_percent: 100,
      temperature: null,
      status: 'CRITICAL' as const,
      node_name: 'health_monitor',
      timestamp: isoUtc(timestampMs),
    };
    scene.store.store.recordHealth(status, JSON.stringify(status), timestampMs);
  };
  disk.fill();
  for (let n = 0; n < 5000; n += 1) record(n);
  scene.hook('10-well');
  const reply = await scene.call({ reason: 'MAINTENANCE' });
  t.equal(reply.success, true);
  t.equal((await scene.ended()).state, 'completed');
  t.match(
    scene.progress.map(({ message }) => message).join('\n'),
    /the step store failed: .*full; continuing, the shutdown does not depend on it/,
  );
  t.match(await scene.records(), [{ outcome: 'completed' }], 'readers see it though it is not written');
  await scene.stop();
  disk.free();
  const next = await Scene.start(t, { folder: scene.folder, dataPath: disk.folder });
  t.match(await next.records(), [{ outcome: 'completed', reason: 'MAINTENANCE' }], 'and the next run writes it');
});

t.test('requests are decided even if the store does not respond', async (t) => {
  const scene = new Scene(t); // Its store is never started.
  await scene.shutdown.start();
  scene.hook('10-well');
  t.equal((await scene.call({ reason: 'OVERTEMP' })).success, true);
  t.equal((await scene.ended()).state, 'completed');
  t.match(await scene.shutdown.status(), { state: 'completed', requests: [] });
});

t.test('records in memory are reported even if the disk hangs', async (t) => {
  const scene = await Scene.start(t);
  await scene.call({ requested_by: 'Zoë' });
  await scene.ended();
  scene.store.store.shutdowns = () => new Promise(() => undefined);
  t.match(await scene.shutdown.status(), { state: 'completed', requested_by: 'Zoë', accepted: 1, requests: [] });
});
