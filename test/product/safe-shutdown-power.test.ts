import t from 'tap';
import { Scene, TestPower } from '../../testkit/service/safe-shutdown.ts';

// The last step, with a machine that only records its calls.

const POWEROFF = { settings: { action: 'poweroff' }, bootId: 'boot 1' } as const;

t.test(
  'the last step follows when all is written and the response is sent; a service stopped after that records the completion',
  async (t) => {
    const power = new TestPower();
    const scene = await Scene.start(t, { ...POWEROFF, power });
    scene.hook('10-well');
    const { perform } = power;
    power.perform = (context) => {
      power.done.push(`waiting samples: ${scene.store.store.state().samples_pending}, ran: ${scene.order()}`);
      return perform(context);
    };
    const start = performance.now();
    t.match((await scene.call({ reason: 'OVERTEMP' })).message, /^accepted: poweroff for OVERTEMP/);
    t.match(await scene.waitForProgress(/poweroff is under way/), { state: 'completed', step: 'power' });
    t.ok(performance.now() - start >= 490, 'half a second is left for the answer');
    t.same(power.done, ['waiting samples: 0, ran: hook 10-well', 'poweroff for operator']);
    t.match(await scene.shutdown.status(), { state: 'in_progress', step: 'power', message: /under way/ }, 'it is not down yet');
    t.match((await scene.call()).message, /refused: already in progress: OVERTEMP/);
    await scene.shutdown.stop();
    t.match(await scene.records(2), [
      { outcome: 'refused' },
      { outcome: 'completed', step: 'power', message: 'completed: poweroff is under way' },
    ]);
    await scene.stop();
    const next = await Scene.start(t, { folder: scene.folder, bootId: 'boot 2' });
    const down = { state: 'completed', reason: 'OVERTEMP', message: 'the machine went down and was started again' };
    t.match(await next.shutdown.status(), down);
    t.equal(next.logged.filter(({ message }) => message.includes('went down and was started again')).length, 1);
    await next.stop();
    const third = await Scene.start(t, { folder: scene.folder, bootId: 'boot 3' });
    t.match(await third.shutdown.status(), down);
    t.notOk(
      third.logged.some(({ message }) => message.includes('went down')),
      'reported once',
    );
  },
);

t.test('if the service is killed during the power-off, the next boot records that it completed', async (t) => {
  const scene = await Scene.start(t, { ...POWEROFF, power: new TestPower() });
  await scene.call();
  await scene.waitForProgress(/is under way/);
  await scene.store.stop(); // Nothing can be recorded any more, either.
  const next = await Scene.start(t, { folder: scene.folder, bootId: 'boot 2' });
  t.match(await next.shutdown.status(), { state: 'completed', message: 'the machine went down and was started again' });
  await next.stop();
});

t.test('if the last step fails the machine stays up, the record has the reason, and the service continues', async (t) => {
  const power = new TestPower();
  power.perform = () => Promise.reject(new Error('access denied'));
  const scene = await Scene.start(t, { ...POWEROFF, settings: { action: 'reboot' }, power });
  await scene.call({ reason: 'OVERTEMP' });
  const aborted = { state: 'aborted', step: 'power', message: /the machine stays up: the step power failed: access denied/ };
  t.match(await scene.ended(), aborted);
  t.match(await scene.shutdown.status(), aborted);
  t.equal((await scene.call()).success, true, 'and the next request is accepted');
  await scene.ended();
  await scene.stop();
  const next = await Scene.start(t, { folder: scene.folder, bootId: 'boot 2' });
  t.match(await next.shutdown.status(), aborted, 'whatever restarted the machine later');
});

t.test('an inhibitor is reported before anything is run, and at the last moment', async (t) => {
  const power = new TestPower();
  power.inhibition = async (_, reason) => (reason === 'EMERGENCY' ? null : 'inhibited by apt (pid 7, user root): upgrading');
  const scene = await Scene.start(t, { ...POWEROFF, power });
  scene.hook('10-well');
  t.match(await scene.call(), { success: false, message: 'refused: inhibited by apt (pid 7, user root): upgrading' });
  t.same(scene.order(), []);
  t.equal((await scene.call({ reason: 'EMERGENCY' })).success, true);
  await scene.waitForProgress(/is under way/);
  t.same(power.done, ['poweroff for operator']);
});

t.test('if the service is stopped just before the last step, the machine stays up', async (t) => {
  const power = new TestPower();
  const scene = await Scene.start(t, { ...POWEROFF, power });
  await scene.call();
  await scene.waitForProgress(/requesting poweroff/);
  await scene.shutdown.stop();
  t.match(await scene.records(1), [{ outcome: 'aborted', message: /the service was stopped during the step power/ }]);
  t.same(power.done, []);
});

t.test('a power-off that is canceled after it began is reported, and the service continues', async (t) => {
  const power = new TestPower();
  const scene = await Scene.start(t, { ...POWEROFF, power });
  await scene.call();
  await scene.waitForProgress(/is under way/);
  power.goingDown = false;
  t.match(await scene.ended(), { state: 'aborted', step: 'power', message: /poweroff began and was canceled/ });
  t.match(await scene.shutdown.status(), { state: 'aborted' });
});

t.test('what prevents the last step is reported once it is known, however long that takes', async (t) => {
  const power = new TestPower();
  let isKnown = (): void => undefined;
  power.prepare = () => new Promise((resolve) => (isKnown = resolve));
  power.refusal = async () => 'which nobody here may do';
  const scene = await Scene.start(t, { ...POWEROFF, power });
  const warnings = (): number => scene.logged.filter(({ message }) => message.includes('which nobody here may do')).length;
  t.equal(warnings(), 0, 'the start does not wait for it');
  isKnown();
  await new Promise(setImmediate);
  t.equal(warnings(), 1);
});
