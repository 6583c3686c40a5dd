import t from 'tap';
import { sharesClock } from './boots.ts';

t.test('boots of one kernel share its clock', async (t) => {
  t.equal(sharesClock('a', 'a'), true);
  t.equal(sharesClock('a', 'b'), false);
  t.equal(sharesClock('kernel/10', 'kernel/22'), true, 'a container that was started again');
  t.equal(sharesClock('kernel/10', 'other/10'), false);
  t.equal(sharesClock('kernel', 'kernel/10'), false, 'one does not tell');
  t.equal(sharesClock('/10', '/22'), false);
  t.equal(sharesClock(null, 'kernel/10'), false, 'nothing is known of the one before');
});
