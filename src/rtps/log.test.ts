import t from 'tap';
import { rarely } from './log.ts';

t.test('each message is logged once per period, then with the number of suppressed ones', async (t) => {
  let now = 100;
  const lines: unknown[] = [];
  const log = rarely(
    (level, message, fields) => lines.push([level, message, fields]),
    () => now,
    60,
  );
  log('warning', 'a', { n: 1 });
  log('warning', 'a', { n: 2 });
  log('info', 'b');
  now += 59.9;
  log('warning', 'a', { n: 3 });
  t.same(lines, [
    ['warning', 'a', { n: 1 }],
    ['info', 'b', {}],
  ]);
  now += 0.1;
  log('warning', 'a', { n: 4 });
  log('warning', 'a', { n: 5 });
  t.same(lines[2], ['warning', 'a', { n: 4, suppressed: 2 }]);
  now += 1000;
  log('warning', 'a', { n: 6 });
  t.same(lines[3], ['warning', 'a', { n: 6, suppressed: 1 }]);
  now += 1000;
  log('warning', 'a', { n: 7 });
  t.same(lines[4], ['warning', 'a', { n: 7 }], 'none in between');
});

t.test('the remembered messages are bounded', async (t) => {
  let lines = 0;
  const log = rarely(
    () => (lines += 1),
    () => 0,
    60,
  );
  for (let i = 0; i < 100_000; i += 1) log('info', `line ${i % 1000}`);
  t.ok(lines <= 100_000);
  const before = lines;
  log('info', 'line 999');
  t.equal(lines, before, 'the last ones are');
});
