import t from 'tap';
import { isAlive, LOCAL, Scene, TIMEOUT_SECONDS } from '../../testkit/service/safe-shutdown.ts';
import { until } from '../../testkit/wait.ts';

// Tests the sequence with real executables and the real store.

const steps = ({ progress }: Scene): string[] => [...new Set(progress.map(({ step }) => step))];
const reported = ({ progress }: Scene): string => progress.map(({ message }) => message).join('\n');

t.test('a dry run performs everything but the last step, in order, and the service continues', async (t) => {
  const scene = await Scene.start(t, { settings: { stop_units: ['camera.service', 'arm.service'] } });
  scene.hook('20-say', 'echo "parked"').heldHook('10-park');
  const reply = await scene.call();
  t.match(await scene.shutdown.status(), { state: 'in_progress' }, 'the answer does not wait for the hooks');
  scene.release();
  t.equal(reply.success, true);
  t.match(reply.message, /^accepted: dry-run for MAINTENANCE within 300 s; request 0/);
  const end = await scene.ended();
  t.match(end, { state: 'completed', step: 'power', message: /dry run/ });
  t.same(scene.order(), ['hook 10-park', 'hook 20-say', 'stop camera.service', 'stop arm.service']);
  t.same(steps(scene), ['announce', 'hooks', 'stop_units', 'store', 'power']);
  const ids = new Set(scene.progress.map(({ request_id }) => request_id));
  t.equal(ids.size, 1);
  t.ok(reply.message.includes([...ids][0] as string));
  for (const progress of scene.progress) {
    t.match(progress, { reason: 'MAINTENANCE', requested_by: 'operator', action: 'dry-run', timestamp: /^2.*Z$/ });
    t.ok(progress.seconds_left > 0 && progress.seconds_left <= TIMEOUT_SECONDS);
  }
  t.ok(scene.logged.some(({ message, fields }) => message === 'shutdown hook output' && fields['output'] === 'parked'));
  t.equal((await scene.call()).success, true, 'and the next one is accepted');
  await scene.ended();
});

t.test('the store is flushed: everything recorded is in the database, and nothing is pending', async (t) => {
  const scene = await Scene.start(t);
  const timestampMs = Date.now();
  const status = {
    cpu_percent: 1,
    memory_percent: 2,
    disk_percent: 3,
    temperature: null,
    status: 'OK' as const,
    node_name: 'health_monitor',
    timestamp: new Date(timestampMs).toISOString(),
  };
  scene.store.store.recordHealth(status, JSON.stringify(status), timestampMs);
  t.equal(scene.store.store.state().samples_pending, 1);
  await scene.call();
  await scene.ended();
  t.match(scene.store.store.state(), { samples_pending: 0, state: 'ok' });
  t.equal((await scene.store.rows()).length, 1);
});

t.test('a failing hook aborts a requested shutdown, and the message names the hook', async (t) => {
  for (const reason of ['MAINTENANCE', 'MANUAL', 'USER_REQUEST']) {
    const scene = await Scene.start(t, { settings: { stop_units: ['camera.service'] } });
    scene.hook('10-well').hook('20-fails', 'echo "arm is not parked" >&2; exit 7').hook('30-never');
    t.equal((await scene.call({ reason })).success, true);
    const end = await scene.ended();
    t.match(end, { state: 'aborted', step: 'hooks', reason });
    t.match(end.message, /aborted, the machine stays up: the step hooks failed: 20-fails: exit code 7; last output: arm is not parked/);
    t.same(scene.order(), ['hook 10-well', 'hook 20-fails'], reason);
    t.match(await scene.shutdown.status(), { state: 'aborted', reason, step: 'hooks', message: /20-fails/ });
    t.equal((await scene.call()).success, true, 'after that the next one is accepted');
    await scene.ended();
    await scene.stop();
  }
});

t.test('if the machine is in danger, failures are skipped', async (t) => {
  for (const reason of ['OVERTEMP', 'EMERGENCY', 'CRITICAL_ALERT', 'POWER_LOW']) {
    const scene = await Scene.start(t, { settings: { stop_units: ['broken.service', 'camera.service'] } });
    scene.hook('10-fails', 'exit 1').hook('20-well');
    await scene.call({ reason });
    t.match(await scene.ended(), { state: 'completed', step: 'power' }, reason);
    t.same(scene.order(), ['hook 10-fails', 'hook 20-well', 'stop broken.service', 'stop camera.service']);
    t.match(reported(scene), /10-fails failed: exit code 1.*continuing, .* does not wait for it.*broken\.service failed/s);
    await scene.stop();
  }
});

t.test('a unit that does not stop aborts as well, and the stopped units are named', async (t) => {
  const scene = await Scene.start(t, { settings: { stop_units: ['camera.service', 'broken.service', 'arm.service'] } });
  await scene.call();
  const { message, state, step } = await scene.ended();
  t.match({ state, step }, { state: 'aborted', step: 'stop_units' });
  t.match(message, /broken\.service: exit code 1;.* units left stopped: camera\.service$/);
  t.same(scene.order(), ['stop camera.service', 'stop broken.service']);
});

t.test('a hook that must not be run is a failed step, and is not skipped silently', async (t) => {
  const scene = await Scene.start(t);
  scene.hook('10-open', '', 0o777).hook('05-notes', '', 0o644);
  await scene.call();
  t.match((await scene.ended()).message, /10-open: not run: others may write/);
  t.same(scene.order(), []);
});

t.test('a configured hook folder that does not exist is reported at the start, and is a failed step', async (t) => {
  const scene = await Scene.start(t, { settings: { hooksFolder: '/no/such/folder' } });
  t.ok(
    scene.logged.some(
      ({ level, message, fields }) => level === 'warning' && /hooks/.test(message) && /no\/such/.test(String(fields['error'])),
    ),
  );
  await scene.call();
  t.match(await scene.ended(), { state: 'aborted', step: 'hooks', message: /no\/such\/folder cannot be read: ENOENT/ });
});

/** The timeouts of the attempts: the hooks before the one that hangs may take their time on a busy machine. */
const TIMEOUTS = [2, 10, 60];
/** Marks the command line of processes, to find them. */
const MARK = `2001.${process.pid}`;

t.test('at the timeout a hung hook is terminated, then killed with its descendants, and the sequence continues to its end', async (t) => {
  for (const reason of ['MAINTENANCE', 'EMERGENCY']) {
    for (const timeout of TIMEOUTS) {
      const scene = await Scene.start(t, { settings: { stop_units: ['camera.service'] } });
      scene.hook('10-well');
      scene
        .hook('20-hangs', `trap '' TERM; sh -c "trap '' TERM; sleep ${MARK} & sleep ${MARK}" & sleep ${MARK}; sleep ${MARK}`)
        .hook('30-never');
      await scene.call({ reason, timeout });
      const end = await scene.ended();
      const [, hasStarted] = scene.order();
      if (hasStarted === undefined && timeout !== TIMEOUTS.at(-1)) continue;
      t.match(end, { state: 'completed', step: 'power' }, reason);
      t.match(reported(scene), /step hooks timed out: 20-hangs was killed; continuing/);
      t.same(scene.order(), ['hook 10-well', 'hook 20-hangs'], 'the others are skipped');
      t.same(steps(scene), ['announce', 'hooks', 'store', 'power']);
      t.notOk(isAlive(MARK), 'nothing of it is left');
      await scene.stop();
      break;
    }
  }
});

t.test('a hook that ends on SIGTERM is only terminated', async (t) => {
  for (const timeout of TIMEOUTS) {
    const scene = await Scene.start(t);
    scene.hook('10-hangs', `trap 'echo "saved in time" >> "${scene.folder}/order"; exit 0' TERM; while :; do sleep 0.05; done`);
    await scene.call({ timeout });
    t.equal((await scene.ended()).state, 'completed');
    const [, saved] = scene.order();
    if (saved === undefined && timeout !== TIMEOUTS.at(-1)) continue;
    t.match(reported(scene), /10-hangs was terminated/);
    t.same(scene.order(), ['hook 10-hangs', 'saved in time']);
    break;
  }
});

t.test('a timeout that is too short for any step still leads to completion', async (t) => {
  const scene = await Scene.start(t, { settings: { stop_units: ['camera.service'] } });
  scene.hook('10-sleeps', `sleep ${MARK}`);
  await scene.call({ timeout: 0.001 });
  t.equal((await scene.ended()).state, 'completed');
});

t.test('a hook that floods its output neither stops the shutdown nor fills the log', async (t) => {
  const scene = await Scene.start(t);
  scene.hook('10-floods', 'yes "all work and no play" | head -c 3000000');
  await scene.call();
  t.equal((await scene.ended()).state, 'completed');
  t.ok(scene.logged.filter(({ message }) => message === 'shutdown hook output').length <= 201);
});

t.test('if the service is stopped meanwhile, the running step is ended and recorded', async (t) => {
  const scene = await Scene.start(t);
  scene.hook('10-long', `exec sleep ${MARK}`);
  await scene.call();
  await until('its hook runs', () => isAlive(`sleep\0${MARK}`));
  await scene.shutdown.stop();
  t.match(scene.progress.at(-1), { state: 'aborted', message: /the service was stopped during the step hooks/ });
  t.notOk(isAlive(MARK));
  t.match((await scene.call()).message, /being stopped/);
  t.match(await scene.records(2), [{ outcome: 'refused' }, { outcome: 'aborted', step: 'hooks' }]);
});

t.test('a listener that throws does not stop the shutdown', async (t) => {
  const scene = await Scene.start(t);
  const push = scene.progress.push.bind(scene.progress);
  scene.progress.push = (...progress) => {
    push(...progress);
    throw new Error('nobody listens');
  };
  await scene.call({}, LOCAL);
  t.equal((await scene.ended()).state, 'completed');
});
