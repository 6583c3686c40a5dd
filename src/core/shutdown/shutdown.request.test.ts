import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { anyText, BLANKS } from '../../../testkit/text.ts';
import { checkCall, SHUTDOWN_REASONS } from './shutdown.ts';

const WELL = { reason: 'MAINTENANCE', requested_by: 'operator', timeout: 30 };
const messageOf = (call: object): string => {
  const checked = checkCall({ ...WELL, ...call });
  return checked.ok ? 'accepted' : checked.message;
};

t.test('every reason is accepted, and nothing similar', async (t) => {
  for (const reason of SHUTDOWN_REASONS) t.equal(messageOf({ reason }), 'accepted', reason);
  t.equal(SHUTDOWN_REASONS.length, 7);
  for (const reason of ['', 'manual', 'MANUAL ', 'MANUAL\0', 'constructor', 'MAINTENANCE,MANUAL']) {
    t.match(messageOf({ reason }), /^reason: found .*, allowed: one of OVERTEMP, .*USER_REQUEST$/, JSON.stringify(reason));
  }
});

t.test('a name has 1 to 128 printable characters, in any script', async (t) => {
  const names = ['a', 'ops@lab', 'Jörg Müller', '運用担当', 'n'.repeat(128), '🤖'.repeat(128), 'e\u0301', '"; rm -rf / #', '$(reboot)'];
  for (const name of names) t.equal(messageOf({ requested_by: name }), 'accepted', name);
  const noNames = [
    '',
    ' ',
    '\u00a0\u3000',
    'n'.repeat(129),
    '🤖'.repeat(129),
    'two\nlines',
    'tab\t',
    'nul\0',
    '\x1b[31mred',
    'a\u202eb',
    'a\u2028b',
    '\ud800',
    '\u200b',
    '\u0085',
    '\ue000',
    ...BLANKS.flatMap((blank) => [blank, `a${blank}b`]),
    '\u0301',
    ' \u0301 ',
  ];
  for (const [n, name] of noNames.entries()) {
    t.match(messageOf({ requested_by: name }), /^requested_by: found .*, allowed: 1 to 128 printable characters$/, `number ${n}`);
  }
});

t.test('a timeout is above 0 and at most 300 seconds', async (t) => {
  for (const timeout of [Number.MIN_VALUE, 0.001, 1, 299.999, 300]) t.equal(messageOf({ timeout }), 'accepted', String(timeout));
  for (const timeout of [0, -0, -1, 300.0001, 1e308, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    t.equal(messageOf({ timeout }), `timeout: found ${timeout}, allowed: seconds above 0, at most 300`);
  }
});

t.test('all invalid fields are reported at once, with the values found', async (t) => {
  const message = messageOf({ reason: 'BORED', requested_by: '', timeout: Number.NaN });
  t.match(message, /reason: found "BORED".*; requested_by: found nothing.*; timeout: found NaN/);
});

t.test('values of wrong types from a transport are refused as well', async (t) => {
  t.match(messageOf({ reason: undefined, requested_by: 7, timeout: '30' }), /found a undefined.*found 7.*found "30"/);
});

t.test('for any call the message is short, printable and one line', async (t) => {
  const anything = fc.record({
    reason: fc.oneof(anyText(300), fc.constantFrom(...SHUTDOWN_REASONS)),
    requested_by: anyText(300),
    timeout: fc.double(),
  });
  fc.assert(
    fc.property(anything, (call) => {
      const checked = checkCall(call);
      const isAllowed =
        SHUTDOWN_REASONS.includes(call.reason as never) &&
        /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u.test(call.requested_by) &&
        call.requested_by.trim() !== '' &&
        call.timeout > 0 &&
        call.timeout <= 300;
      if (checked.ok) return isAllowed;
      return !isAllowed && checked.message.length < 600 && !/[\p{C}\p{Zl}\p{Zp}]/u.test(checked.message);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.pass();
});

t.test('a field of several megabytes is not scanned', async (t) => {
  const huge = 'x'.repeat(20_000_000);
  const millisecondsOf = (work: () => unknown): number => {
    const start = performance.now();
    work();
    return performance.now() - start;
  };
  const passMs = millisecondsOf(() => /[\p{C}\p{Zl}\p{Zp}]/u.test(huge));
  // The best of several runs excludes delays by other processes.
  const checkMs = Math.min(...Array.from({ length: 10 }, () => millisecondsOf(() => messageOf({ reason: huge, requested_by: huge }))));
  t.ok(checkMs < passMs / 2, 'a call is checked faster than its text is read once');
  const message = messageOf({ reason: huge, requested_by: huge });
  t.match(message, /\(20000000 characters\)/);
  t.ok(message.length < 600);
});
