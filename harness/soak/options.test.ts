import t from 'tap';
import { readOptions } from './options.ts';

t.test('the default is a week of samples at 200 Hz', async (t) => {
  t.match(readOptions([]), { samples: 604_800, hertz: 200, transport: 'embedded', folder: /build\/soak$/ });
});

t.test('reads each option', async (t) => {
  const argv = ['--samples', '60000', '--hertz', '300', '--transport', 'off', '--out', '/tmp/x'];
  t.match(readOptions(argv), { samples: 60_000, hertz: 300, transport: 'off', folder: '/tmp/x' });
});

t.test('returns null if the usage is requested', async (t) => {
  t.equal(readOptions(['--help']), null);
  t.equal(readOptions(['-h']), null);
});

t.test('the error for a wrong option states what is allowed', async (t) => {
  const cases = [
    [['--samples', '1000'], /--samples is "1000"; allowed: 12000 to/],
    [['--samples', 'many'], /--samples is "many"; allowed/],
    [['--hertz', '0'], /--hertz is "0"; allowed: 1 to 1000/],
    [['--hertz', ''], /--hertz is ""; allowed/],
    [['--transport', 'ros'], /--transport is "ros"; allowed: embedded, rclnodejs, off/],
    [['--minutes', '1'], /minutes/],
    [['more'], /more/],
  ] as const;
  for (const [argv, error] of cases) t.throws(() => readOptions(argv), error);
});
