import t from 'tap';
import { axisTime, counted, decimalDuration, rounded } from './format.ts';

t.test('formats a time on the axis', async (t) => {
  t.equal(axisTime(0), '0 d 00:00:00');
  t.equal(axisTime(90_061.4), '1 d 01:01:01');
  t.equal(axisTime(604_799.5), '7 d 00:00:00');
  t.equal(axisTime(-3661), '−0 d 01:01:01');
  t.equal(axisTime(86_399), '0 d 23:59:59');
});

t.test('formats durations, counts and decimals', async (t) => {
  t.same([0.04, 599.94, 600, 7199, 7200, 605_000].map(decimalDuration), ['0 s', '599.9 s', '10 min', '120 min', '2 h', '168.06 h']);
  t.same([counted(0, 'restart'), counted(1, 'restart'), counted(2, 'restart')], ['0 restarts', '1 restart', '2 restarts']);
  t.equal(counted(2, 'status', 'statuses'), '2 statuses');
  t.same([rounded(1.005, 1), rounded(2.55555, 3), rounded(3, 2)], [1, 2.556, 3]);
});
