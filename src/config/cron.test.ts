import fc from 'fast-check';
import { parse, validate } from 'node-cron';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { cronProblem, isTimeZone, scheduleProblem } from './cron.ts';
import { formatConfigError, parseConfig } from './parse.ts';

t.test('valid expressions', async (t) => {
  const allowed = [
    '* * * * *',
    '*/5 * * * *',
    '0 0 * * *',
    '0,30 8-18/2 * * mon-fri',
    '15 2 1,15 * *',
    '0 0 29 feb *',
    '0 0 31 JAN,Mar *',
    '0 22-5 * * *',
    '0 6 * * fri-mon',
    '0 6 * * 0,7',
    ' 0  6 * * *',
  ];
  for (const expression of allowed) t.equal(cronProblem(expression), null, expression);
  t.equal(scheduleProblem('off'), null);
});

t.test('each mistake has its own message', async (t) => {
  const problems: readonly (readonly [string, RegExp])[] = [
    ['', /fields? instead of five/],
    ['* * * *', /^4 fields instead of five/],
    ['* * * * * *', /^6 fields instead of five/],
    ['60 * * * *', /^minute "60": allowed are \*, 0 to 59,/],
    ['* 24 * * *', /^hour "24"/],
    ['* * 0 * *', /^day of the month "0"/],
    ['* * * 13 *', /^month "13": allowed are \*, 1 to 12 or jan to dec/],
    ['* * * * 8', /^weekday "8"/],
    ['5/10 * * * *', /a step needs \* or a range/],
    ['*/0 * * * *', /a step is from 1 to 60/],
    ['*/61 * * * *', /a step is from 1 to 60/],
    ['1,,2 * * * *', /^minute ""/],
    ['-1 * * * *', /^minute "-1"/],
    ['1.5 * * * *', /^minute "1.5"/],
    ['@daily', /^1 field instead of five/],
    ['0 0 L * *', /^day of the month "L"/],
    ['0 0 * * 1#2', /^weekday "1#2"/],
    ['0 0 31 4,6 *', /^no month of "4,6" has a day "31"/],
    ['0 0 30 feb *', /^no month/],
    ['0 0 1 * mon', /^either the day of the month or the weekday/],
    ['mon * * * *', /^minute "mon"/],
  ];
  for (const [expression, problem] of problems) t.match(cronProblem(expression), problem, expression);
});

const number = (min: number, max: number) => fc.integer({ min, max }).map(String);
const field = (min: number, max: number) => {
  const range = fc.tuple(number(min, max), number(min, max)).map(([a, b]) => `${a}-${b}`);
  const stepped = fc.tuple(fc.oneof(fc.constant('*'), range), number(1, max - min)).map(([what, step]) => `${what}/${step}`);
  const item = fc.oneof(fc.constant('*'), number(min, max), range, stepped);
  return fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','));
};
const expressions = fc
  .tuple(field(0, 59), field(0, 23), fc.oneof(fc.constant('*'), field(1, 31)), field(1, 12), fc.oneof(fc.constant('*'), field(0, 7)))
  .map((fields) => fields.join(' '));

t.test('node-cron accepts every valid expression, with the same meaning', async (t) => {
  let allowed = 0;
  fc.assert(
    fc.property(expressions, (expression) => {
      if (cronProblem(expression) !== null) return;
      allowed += 1;
      if (!validate(expression)) throw new Error(`node-cron refuses ${expression}`);
      const { hour, minute } = parse(expression);
      for (const [values, max] of [[minute, 59] as const, [hour, 23] as const]) {
        if (values.length === 0 || values.some((value) => !Number.isInteger(value) || value < 0 || value > max))
          throw new Error(expression);
      }
    }),
    { numRuns: runs(300, 10000), seed: SEED },
  );
  t.ok(allowed > 200, `${allowed} of them were allowed`);
});

t.test('no text causes an exception', async (t) => {
  const parts = fc.constantFrom('*', '/', '-', ',', ' ', '5', '59', '7', 'mon', 'jan', 'L', '#', '?', '@daily', 'é', '\n');
  const texts = fc.oneof(
    fc.string(),
    fc.array(parts, { maxLength: 16 }).map((words) => words.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      if (cronProblem(text) === null && !validate(text)) throw new Error(`node-cron refuses "${text}"`);
    }),
    { numRuns: runs(600, 20000), seed: SEED },
  );
  t.pass();
});

t.test('an invalid schedule or time zone is refused with the allowed values', async (t) => {
  const parsed = parseConfig('ops:\n  backup_logs: 0 25 * * *\n  health_check: never\n  timezone: Europe/Atlantis\n', 'robot.yaml');
  const lines = parsed.ok ? [] : parsed.errors.map(formatConfigError);
  t.equal(lines.length, 3);
  t.match(
    lines[0],
    /^robot\.yaml:2:16: ops\.backup_logs: found "0 25 \* \* \*"; allowed: a cron expression .* or off \(hour "25": allowed are \*, 0 to 23/,
  );
  t.match(lines[1], /^robot\.yaml:3:17: ops\.health_check: found "never"; .*1 field instead of five/);
  t.match(lines[2], /^robot\.yaml:4:13: ops\.timezone: found "Europe\/Atlantis"; allowed: a time zone such as Europe\/Berlin/);
  t.ok(parseConfig('ops: {backup_logs: off, timezone: America/New_York}\n', 'robot.yaml').ok);
});

t.test('time zones', async (t) => {
  for (const name of ['Europe/Berlin', 'Asia/Kolkata', 'UTC', 'Etc/GMT+5']) t.ok(isTimeZone(name), name);
  for (const name of ['Berlin', '', 'Europe/Atlantis']) t.notOk(isTimeZone(name), name);
});
