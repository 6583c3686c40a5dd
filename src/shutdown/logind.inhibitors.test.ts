import t from 'tap';
import { SHUTDOWN_REASONS } from '../core/shutdown/shutdown.ts';
import { type Inhibitor, inhibition, overridesLocks } from './logind.ts';

const APT: Inhibitor = {
  what: ['shutdown', 'sleep'],
  who: 'apt',
  why: 'Unattended upgrade is running',
  mode: 'block',
  user: 'root',
  pid: 123,
};

t.test('the holder of a lock is named, with its reason and the remedy', async (t) => {
  t.equal(inhibition([]), null);
  t.equal(
    inhibition([APT]),
    'inhibited by apt (pid 123, user root): Unattended upgrade is running; try again later, or use the reason EMERGENCY',
  );
  t.match(inhibition([APT, { ...APT, who: 'dpkg', why: ' ' }]), /^inhibited by apt .* running and by dpkg \(.*\): no reason given; try/);
  t.match(inhibition([APT, APT, APT, APT]), /running and 2 more; try again/);
});

t.test('blocking locks of either strength count; delay locks and locks for other actions do not', async (t) => {
  t.match(inhibition([{ ...APT, mode: 'block-weak' }]), /^inhibited/);
  t.equal(inhibition([{ ...APT, mode: 'delay' }]), null);
  t.equal(inhibition([{ ...APT, what: ['sleep', 'idle', 'handle-power-key'] }]), null);
});

t.test('the text of a lock can neither garble nor fill a log', async (t) => {
  const message = inhibition([{ ...APT, who: 'w\u001b[31m\n'.repeat(500), why: '\u202ey'.repeat(5000) }, APT, APT]) as string;
  t.ok(message.length < 500, `${message.length}`);
  t.notMatch(message, /\p{C}/u);
});

t.test('a machine in danger shuts down regardless of locks', async (t) => {
  const overriding = SHUTDOWN_REASONS.filter(overridesLocks);
  t.same(overriding, ['OVERTEMP', 'CRITICAL_ALERT', 'EMERGENCY', 'POWER_LOW']);
});
