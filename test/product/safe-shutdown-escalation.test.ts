import t, { type Test } from 'tap';
import { ON_FAILURE, SHUTDOWN_REASONS, type ShutdownReason } from '../../src/core/shutdown/shutdown.ts';
import { caller, isAlive, Scene, type SceneOptions, TestPower } from '../../testkit/service/safe-shutdown.ts';
import { until } from '../../testkit/wait.ts';

// An EMERGENCY or OVERTEMP request during a shutdown that would abort on a failure.

const ESCALATING = ['EMERGENCY', 'OVERTEMP'] as const;
const ABORTING = SHUTDOWN_REASONS.filter((reason) => ON_FAILURE[reason] === 'abort');
const WATCHDOG = { reason: 'EMERGENCY', requested_by: 'watchdog' };
const POWEROFF: SceneOptions = { settings: { action: 'poweroff' }, bootId: 'boot 1' };
/** Marks the command line of a hook that hangs. */
const MARK = `2002.${process.pid}`;

/** A scene with a shutdown whose first hook runs until release(). */
async function begun(t: Test, reason: ShutdownReason = 'MAINTENANCE', options: SceneOptions = {}, second = ''): Promise<Scene> {
  const scene = await Scene.start(t, options);
  scene.heldHook('10-waits');
  if (second !== '') scene.hook('20-fails', second);
  t.equal((await scene.call({ reason })).success, true);
  await until('its hook runs', () => scene.order().includes('hook 10-waits'));
  return scene;
}

t.test('the rest skips what fails, for the new reason, and the caller is answered', async (t) => {
  for (const inProgress of ABORTING) {
    for (const reason of ESCALATING) {
      const failing = 'echo "for $EDGE_HEALTH_SHUTDOWN_REASON by $EDGE_HEALTH_SHUTDOWN_REQUESTED_BY"; exit 1';
      const scene = await begun(t, inProgress, { settings: { stop_units: ['broken.service', 'camera.service'] } }, failing);
      const [accepted] = scene.progress;
      const { message, success } = await scene.call({ reason, requested_by: 'watchdog', timeout: 200 });
      t.equal(success, true, message);
      const wanted = `^escalated: dry-run for ${reason} within [\\d.]+ s, requested for ${inProgress} by operator; request ${accepted?.request_id}$`;
      t.match(message, new RegExp(wanted));
      t.match(await scene.shutdown.status(), {
        state: 'in_progress',
        request_id: accepted?.request_id,
        reason,
        requested_by: 'watchdog',
        step: 'hooks',
        accepted: 2,
      });
      scene.release();
      t.match(await scene.ended(), { state: 'completed', step: 'power', reason, requested_by: 'watchdog' });
      t.same(scene.order(), ['hook 10-waits', 'hook 20-fails', 'stop broken.service', 'stop camera.service'], 'nothing is run twice');
      t.ok(scene.logged.some(({ fields }) => fields['output'] === `for ${reason} by watchdog`));
      t.equal(new Set(scene.progress.map(({ request_id }) => request_id)).size, 1);
      t.match(
        scene.progress.find(({ message }) => message.includes('was escalated to')),
        {
          state: 'in_progress',
          step: 'hooks',
          reason,
          message: new RegExp(`^${inProgress}, requested by operator, was escalated to ${reason}, `),
        },
      );
      t.match(await scene.records(), [
        { reason, requested_by: 'watchdog', user: 'robot', timeout: 200, outcome: 'completed', step: 'power', action: 'dry-run' },
        { reason: inProgress, requested_by: 'operator', outcome: 'completed', request_id: accepted?.request_id },
      ]);
      await scene.stop();
    }
  }
});

t.test('nothing else interrupts a shutdown, and an escalated one is not escalated again', async (t) => {
  for (const inProgress of SHUTDOWN_REASONS) {
    const scene = await begun(t, inProgress);
    for (const reason of SHUTDOWN_REASONS) {
      if (ABORTING.includes(inProgress) && ESCALATING.includes(reason as never)) continue;
      const { message, success } = await scene.call({ reason, requested_by: 'second' });
      t.notOk(success, `${reason} during ${inProgress}`);
      t.match(message, new RegExp(`^refused: already in progress: ${inProgress}, requested by operator, `));
    }
    if (ABORTING.includes(inProgress)) {
      const replies = await Promise.all(['a', 'b', 'c'].map((requested_by) => scene.call({ reason: 'OVERTEMP', requested_by })));
      t.equal(replies.filter(({ success }) => success).length, 1, 'of several at the same moment one');
      t.match((await scene.call(WATCHDOG)).message, /already in progress: OVERTEMP, requested by [abc], /);
    }
    scene.release();
    t.equal((await scene.ended()).state, 'completed');
    await scene.stop();
  }
});

t.test('the deadline becomes the shorter one, also for a hook that hangs', async (t) => {
  const scene = await Scene.start(t, { settings: { stop_units: ['camera.service'] } });
  scene.hook('10-hangs', `trap '' TERM; sleep ${MARK} & sleep ${MARK}; sleep ${MARK}`);
  await scene.call();
  await until('its hook runs', () => isAlive(MARK));
  t.equal((await scene.call({ ...WATCHDOG, timeout: 2 })).success, true);
  t.match(await scene.ended(), { state: 'completed', step: 'power' });
  t.ok(scene.progress.some(({ message }) => /step hooks timed out: 10-hangs was (killed|terminated)/.test(message)));
  t.ok((scene.progress.find(({ reason }) => reason === 'EMERGENCY')?.seconds_left ?? 3) <= 2);
  t.notOk(isAlive(MARK));
});

t.test('a longer timeout extends nothing', async (t) => {
  const scene = await Scene.start(t);
  scene.hook('10-hangs', `exec sleep ${MARK}`);
  await scene.call({ timeout: 4 });
  t.match(await scene.call({ ...WATCHDOG, timeout: 300 }), { success: true, message: /within [0-4]\.\d s/ });
  t.match(await scene.ended(), { state: 'completed' });
  t.ok(scene.progress.every(({ seconds_left }) => seconds_left <= 4));
});

t.test('a store that hangs is left at the shorter deadline', async (t) => {
  const scene = await Scene.start(t);
  const { store } = scene.store;
  const flush = store.flush.bind(store);
  store.flush = () => new Promise(() => undefined);
  await scene.call();
  await scene.waitForProgress(/writing pending records/);
  t.equal((await scene.call({ ...WATCHDOG, timeout: 0.5 })).success, true);
  t.match(await scene.ended(), { state: 'completed', step: 'power' });
  store.flush = flush;
  await scene.waitForProgress(/the step store failed: not done within/);
});

t.test('a lock that would abort the last step is overridden, also while it is being read', async (t) => {
  for (const isBeingRead of [false, true]) {
    const power = new TestPower();
    const { perform } = power;
    const locked = Promise.withResolvers<void>();
    power.perform = async (context) => {
      power.done.push(`attempt for ${context.reason}`);
      if (ON_FAILURE[context.reason] === 'skip') return perform(context);
      await locked.promise;
      throw new Error('inhibited by apt');
    };
    const scene = await Scene.start(t, { ...POWEROFF, power });
    await scene.call();
    await scene.waitForProgress(/requesting poweroff/);
    if (isBeingRead) await until('logind is asked', () => power.done.length > 0);
    t.equal((await scene.call(WATCHDOG)).success, true);
    locked.resolve();
    await scene.waitForProgress(/is under way/);
    t.same(power.done, [...(isBeingRead ? ['attempt for MAINTENANCE'] : []), 'attempt for EMERGENCY', 'poweroff for watchdog']);
    await scene.stop();
  }
});

t.test('while the machine goes down, the request is answered and recorded, and changes nothing else', async (t) => {
  const power = new TestPower();
  const scene = await Scene.start(t, { ...POWEROFF, power });
  await scene.call();
  await scene.waitForProgress(/is under way/);
  t.match(await scene.call(WATCHDOG), { success: true, message: /^escalated/ });
  t.match(scene.progress.at(-1), { state: 'completed', step: 'power', reason: 'EMERGENCY' });
  t.same(power.done, ['poweroff for operator']);
  await scene.shutdown.stop();
  t.match(await scene.records(), [
    { reason: 'EMERGENCY', outcome: 'completed', step: 'power' },
    { reason: 'MAINTENANCE', outcome: 'completed', step: 'power' },
  ]);
});

t.test('whenever it arrives around a failure, an accepted request brings the machine down', async (t) => {
  for (let turns = 0; turns < 25; turns += 1) {
    const scene = await Scene.start(t);
    scene.hook('10-fails', 'exit 1');
    const reply = Promise.withResolvers<boolean>();
    const push = scene.progress.push.bind(scene.progress);
    scene.progress.push = (...progress) => {
      if (progress.some(({ message, reason }) => reason === 'MANUAL' && message.startsWith('10-fails failed'))) {
        void (async () => {
          for (let turn = 0; turn < turns; turn += 1) await null;
          reply.resolve((await scene.call(WATCHDOG)).success);
        })();
      }
      return push(...progress);
    };
    await scene.call({ reason: 'MANUAL' });
    t.equal(await reply.promise, true);
    t.match(await scene.ended(), { state: 'completed', reason: 'EMERGENCY' }, `after ${turns} turns`);
    await scene.stop();
  }
});

t.test('after a restart both requests have the outcome of the one shutdown', async (t) => {
  const scene = await begun(t, 'MANUAL', { ...POWEROFF, power: new TestPower() });
  const { request_id } = await scene.shutdown.status();
  await scene.call(WATCHDOG);
  await scene.store.stop(); // As if killed.
  const killed = await Scene.start(t, { folder: scene.folder, bootId: 'boot 1' });
  const interrupted = { outcome: 'interrupted', step: 'hooks' };
  t.match(await killed.records(), [
    { ...interrupted, reason: 'EMERGENCY' },
    { ...interrupted, reason: 'MANUAL' },
  ]);
  const shown = { state: 'interrupted', request_id, reason: 'EMERGENCY', requested_by: 'watchdog' };
  t.match(await killed.shutdown.status(), shown);
  await killed.stop();
  const next = await Scene.start(t, { folder: scene.folder, bootId: 'boot 2' });
  t.match(await next.shutdown.status(), shown, 'recorded once');
  t.notOk(next.logged.some(({ message }) => message.includes('interrupted')));
  scene.release();
});

t.test('if the service is stopped, both are aborted', async (t) => {
  const scene = await begun(t);
  await scene.call(WATCHDOG);
  await scene.shutdown.stop();
  t.match(await scene.records(), [
    { reason: 'EMERGENCY', outcome: 'aborted', message: /the service was stopped/ },
    { reason: 'MAINTENANCE', outcome: 'aborted' },
  ]);
  t.equal((await scene.call(WATCHDOG)).success, false);
});

t.test('it needs the same permission as any request, and the shutdown keeps its settings', async (t) => {
  const scene = await begun(t);
  t.match((await scene.call(WATCHDOG, caller({ address: '192.0.2.7', local: false }))).message, /not accepted/);
  t.match((await scene.call({ ...WATCHDOG, timeout: -1 })).message, /timeout/);
  await scene.shutdown.configure({ ...scene.settings, enabled: false });
  t.match((await scene.call(WATCHDOG)).message, /enabled is false/);
  t.match(await scene.shutdown.status(), { reason: 'MAINTENANCE', accepted: 1, refused: 3 });
  await scene.shutdown.configure({ ...scene.settings, action: 'reboot', stop_units: ['camera.service'] });
  t.match((await scene.call(WATCHDOG)).message, /^escalated: dry-run/);
  scene.release();
  t.match(await scene.ended(), { state: 'completed', action: 'dry-run' });
  t.same(scene.order(), ['hook 10-waits']);
});
