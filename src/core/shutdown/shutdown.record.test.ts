import t from 'tap';
import { recordOf, resolvedOutcome, type ShutdownRecord } from './shutdown.ts';

const CALL = { reason: 'MANUAL', requested_by: 'ops', timeout: 30 };
const HERE = { address: '127.0.0.1', port: 40_000, user: 'robot' };
const DECIDED = {
  request_id: '01J',
  timestamp: '2026-03-04T05:06:07.089Z',
  action: 'poweroff',
  outcome: 'in_progress',
  message: 'accepted',
  boot_id: 'boot-1',
} as const;
const LATER = '2026-03-04T06:00:00.000Z';

t.test('any call is recorded truncated and printable', async (t) => {
  const call = { reason: `x\n${'y'.repeat(1000)}`, requested_by: 'z'.repeat(1000), timeout: Number.NaN };
  const record = recordOf(
    call,
    { address: 'a'.repeat(1000), port: 65_535, user: 'u\n'.repeat(1000) },
    { ...DECIDED, outcome: 'refused', message: 'm'.repeat(9999) },
  );
  t.ok(JSON.stringify(record).length < 1700);
  t.match(record, { reason: /^x\\ny+…$/, timeout: null, calls: 1, step: null, ended: DECIDED.timestamp });
  t.match(recordOf(CALL, HERE, DECIDED), { ...CALL, ...HERE, ended: null, outcome: 'in_progress' });
});

t.test('a request that an earlier run left in progress is interrupted', async (t) => {
  const left: ShutdownRecord = { ...recordOf(CALL, HERE, DECIDED), step: 'hooks' };
  t.match(resolvedOutcome(left, 'boot-1', LATER), {
    outcome: 'interrupted',
    message: /the service ended during the step hooks/,
    ended: LATER,
  });
  t.match(resolvedOutcome(left, 'boot-2', LATER), { outcome: 'interrupted', message: /the machine went down during the step hooks/ });
  t.match(resolvedOutcome(left, null, LATER), { outcome: 'interrupted' });
});

t.test('a request left in the last step is completed if the machine has booted since', async (t) => {
  const left: ShutdownRecord = { ...recordOf(CALL, HERE, DECIDED), step: 'power' };
  t.match(resolvedOutcome(left, 'boot-2', LATER), { outcome: 'completed', message: /started again/, ended: LATER });
  t.match(resolvedOutcome(left, 'boot-1', LATER), { outcome: 'interrupted' });
  t.match(resolvedOutcome({ ...left, boot_id: null }, 'boot-2', LATER), { outcome: 'interrupted' });
  t.match(resolvedOutcome({ ...left, action: 'dry-run' }, 'boot-2', LATER), { outcome: 'interrupted' });
});

t.test('an ended request stays unchanged', async (t) => {
  for (const outcome of ['refused', 'completed', 'aborted', 'interrupted'] as const) {
    const record: ShutdownRecord = { ...recordOf(CALL, HERE, DECIDED), outcome };
    t.equal(resolvedOutcome(record, 'boot-2', LATER), record);
  }
});
