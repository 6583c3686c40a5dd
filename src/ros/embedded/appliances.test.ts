import t from 'tap';
import { Appliances } from './appliances.ts';

const AUTO = { name: 'robot', mode: 'auto' } as const;
const lost = (appliances: Appliances): (number | null)[] => appliances.expected().map(({ lostSeconds }) => lostSeconds);

t.test('an appliance that vanishes stays expected until it is back; one that leaves does not', async (t) => {
  const appliances = new Appliances(null, 0);
  appliances.add('01', AUTO, '10.0.0.1', 10);
  t.same(appliances.remove('01', false, 50), { name: 'robot', hasLeft: false });
  t.same(appliances.expected(), [{ name: 'robot', address: '10.0.0.1', sinceSeconds: 10, lostSeconds: 50 }]);
  t.same(appliances.all(), []);
  appliances.add('02', AUTO, '10.0.0.1', 60);
  t.same(appliances.expected(), [{ name: 'robot', address: '10.0.0.1', sinceSeconds: 10, lostSeconds: null }]);
  t.same(appliances.remove('02', true, 70), { name: 'robot', hasLeft: true });
  t.same(appliances.expected(), []);
  t.equal(appliances.remove('02', true, 71), null);
});

t.test('the lease of a robot that was restarted ends without a loss', async (t) => {
  const appliances = new Appliances(null, 0);
  appliances.add('01', AUTO, '10.0.0.1', 10);
  appliances.add('02', AUTO, '10.0.0.1', 20);
  t.equal(appliances.remove('01', false, 30), null);
  t.same(lost(appliances), [null]);
  appliances.remove('02', true, 40);
  t.same(lost(appliances), []);
});

t.test('another host under the name of a robot does not hide that the robot vanished', async (t) => {
  for (const isBefore of [true, false]) {
    const appliances = new Appliances(null, 0);
    appliances.add('01', AUTO, '10.0.0.1', 10);
    if (isBefore) appliances.add('66', AUTO, '10.0.0.66', 20);
    appliances.remove('01', false, 30);
    if (!isBefore) appliances.add('66', AUTO, '10.0.0.66', 40);
    t.same(appliances.remove('66', true, 50), { name: 'robot', hasLeft: false });
    t.same(lost(appliances), [30]);
  }
});

t.test('after the participant was replaced, what is not discovered again has vanished', async (t) => {
  const former = new Appliances(null, 0);
  former.add('01', AUTO, '10.0.0.1', 10);
  former.add('02', { name: 'other', mode: 'auto' }, '10.0.0.2', 10);
  former.remove('02', false, 40);
  const appliances = new Appliances(former, 100);
  t.same(lost(appliances).sort(), [100, 40]);
  appliances.add('01', AUTO, '10.0.0.1', 101);
  t.same(lost(appliances).sort(), [40, null]);
});
