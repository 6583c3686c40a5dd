import t from 'tap';
import { formatDuration } from './duration.ts';

t.test('durations show the two largest units, rounded down', async (t) => {
  t.same(
    [-5, 0.9, 45.9, 60, 90, 120.9, 3599.9, 3600, 11_520, 86_399, 86_400, 604_799, 604_800].map((seconds) => formatDuration(seconds)),
    ['0 s', '0 s', '45 s', '1 min', '1 min 30 s', '2 min', '59 min 59 s', '1 h', '3 h 12 min', '23 h 59 min', '1 d', '6 d 23 h', '7 d'],
  );
  t.equal(formatDuration(3599.9999999999995), '1 h', 'a difference of binary fractions');
  t.equal(formatDuration(86_459), '1 d', 'a third unit is left out, even where the second is 0');
});

t.test('hours can be the largest unit', async (t) => {
  t.same(
    [604_800, 604_799, 3600, 90, 120.9, 0.9, -5].map((seconds) => formatDuration(seconds, 'h')),
    ['168 h', '167 h 59 min', '1 h', '1 min 30 s', '2 min', '0 s', '0 s'],
  );
});
