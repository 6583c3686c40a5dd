import { isDeepStrictEqual as same } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { type Alert, nodeOfAlertId, SEVERITIES, STATUSES } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { METRICS } from '../core/metrics.ts';
import { isNodeName } from '../core/node-name.ts';
import { isoUtc } from '../core/time/time.ts';
import { ALERT, HEALTH_STATUS } from './interfaces.generated.ts';
import { alertFrom, type Checked, healthStatusFrom, healthStatusMessage } from './messages.ts';

// With EDGE_HEALTH_LONG=1 it takes minutes.
t.setTimeout(900_000);

// --- what a node may publish

const quantity = fc.double({ min: -1e9, max: 1e9, noNaN: true }).map((value) => (value === 0 ? 0 : value));
const reading = fc.option(quantity, { nil: null });
const name = fc
  .string({ unit: fc.constantFrom(...'abzAZ059_ /-.äß漢𠮷'), minLength: 1, maxLength: 64 })
  .filter((text) => !text.startsWith('/') && isNodeName(text));
const timestamp = fc.integer({ min: 0, max: Date.UTC(10_000, 0) - 1 }).map(isoUtc);
const status: fc.Arbitrary<HealthStatus> = fc.record({
  cpu_percent: reading,
  memory_percent: reading,
  disk_percent: reading,
  temperature: reading,
  status: fc.constantFrom(...STATUSES),
  node_name: name,
  timestamp,
});
const alert: fc.Arbitrary<Alert> = fc
  .record({
    severity: fc.constantFrom(...SEVERITIES),
    metric: fc.constantFrom(...METRICS, 'health_status', 'a.b-c', 'disk:/', 'disk:/media/my disk'),
    value: quantity,
    threshold: quantity,
    timestamp,
    resolved: fc.boolean(),
    node: name,
    unique: fc.stringMatching(/^[0-9A-Z]{26}$/),
  })
  .map(({ node, unique, ...rest }) => ({ alert_id: `${node}/${rest.metric}/${unique}`, ...rest }));

const names = (layout: { fields: readonly (readonly [string, unknown])[] }): string[] => layout.fields.map(([field]) => field);

t.test('a sent health status has exactly the fields of the type, in its order', async (t) => {
  fc.assert(
    fc.property(status, (given) => same(Object.keys(healthStatusMessage(given)), names(HEALTH_STATUS))),
    { numRuns: runs(100, 5000), seed: SEED },
  );
  t.pass('for all statuses');
});

t.test('conversion to a message and back keeps all fields', async (t) => {
  fc.assert(
    fc.property(status, (given) => same(healthStatusFrom(healthStatusMessage(given)), { ok: true, value: { ...given } })),
    { numRuns: runs(100, 5000), seed: SEED },
  );
  fc.assert(
    fc.property(alert, (given) => same(alertFrom(given), { ok: true, value: { ...given } })),
    { numRuns: runs(100, 5000), seed: SEED },
  );
  t.pass('both');
});

const GOOD: HealthStatus = {
  cpu_percent: 12.5,
  memory_percent: 40,
  disk_percent: 71.03,
  temperature: 51.2,
  status: 'OK',
  node_name: '/robot1/health_monitor',
  timestamp: '2026-03-04T05:06:07.089Z',
};
const ALARM: Alert = {
  alert_id: '/robot1/health_monitor/cpu_percent/01ARZ3NDEKTSV4RRFFQ69G5FAV',
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 81,
  threshold: 80,
  timestamp: '2026-03-04T05:06:07.089Z',
  resolved: false,
};

/** The reason for which a message with this one field changed is refused. */
function reasonOf(check: (message: unknown) => Checked<unknown>, good: object, change: Readonly<Record<string, unknown>>): string {
  const result = check({ ...good, ...change });
  return result.ok ? `taken: ${JSON.stringify(result.value)}` : result.reason;
}

t.test('unavailable metrics are NaN on the graph and null here, never 0', async (t) => {
  const nothing = { ...GOOD, cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null, status: 'UNKNOWN' as const };
  const message = healthStatusMessage(nothing);
  for (const metric of METRICS) t.ok(Number.isNaN(message[metric]), metric);
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    t.strictSame(healthStatusFrom({ ...GOOD, temperature: value }), { ok: true, value: { ...GOOD, temperature: null } });
  }
  t.strictSame(healthStatusFrom({ ...GOOD, cpu_percent: 0, temperature: -0 }), {
    ok: true,
    value: { ...GOOD, cpu_percent: 0, temperature: 0 },
  });
});

t.test('a percentage above 100 is kept, impossible values are refused', async (t) => {
  t.strictSame(healthStatusFrom({ ...GOOD, cpu_percent: 387.25 }), { ok: true, value: { ...GOOD, cpu_percent: 387.25 } });
  t.strictSame(healthStatusFrom({ ...GOOD, temperature: -12.5 }), { ok: true, value: { ...GOOD, temperature: -12.5 } });
  for (const metric of METRICS) {
    t.equal(reasonOf(healthStatusFrom, GOOD, { [metric]: 5e300 }), `${metric} is 5e+300; allowed: a number from -1000000000 to 1000000000`);
    t.equal(reasonOf(healthStatusFrom, GOOD, { [metric]: '12' }), `${metric} is "12"; allowed: a number`);
    t.equal(reasonOf(healthStatusFrom, GOOD, { [metric]: 12n }), `${metric} is a value of type bigint; allowed: a number`);
  }
});

t.test('status, names and ids outside of what is allowed are refused, each with its field', async (t) => {
  for (const bad of ['ok', '', 'FATAL', 'OK\0', 0, null]) {
    t.match(reasonOf(healthStatusFrom, GOOD, { status: bad }), /^status is .*; allowed: one of OK, WARNING, UNKNOWN, ERROR, CRITICAL$/);
  }
  for (const bad of ['', ' ', 'a\u202eb', 'x'.repeat(65), 7, undefined]) {
    t.match(
      reasonOf(healthStatusFrom, GOOD, { node_name: bad }),
      /^node_name is .*; allowed: 1 to 64 letters, digits, spaces and _ - \. \/, no space at either end$/,
    );
    if (typeof bad === 'string') t.match(reasonOf(alertFrom, ALARM, { alert_id: `${bad}/cpu_percent/01` }), /^alert_id is .*; allowed: /);
  }
  for (const good of ['x'.repeat(64), 'Prüfstand 7', '/a/b/c', '台車']) {
    t.ok(healthStatusFrom({ ...GOOD, node_name: good }).ok, good);
    t.ok(alertFrom({ ...ALARM, alert_id: `${good}/cpu_percent/01` }).ok, good);
  }
  t.ok(alertFrom({ ...ALARM, metric: 'disk:/a/b', alert_id: 'ns/node/disk:/a/b/01' }).ok);
  t.match(
    reasonOf(alertFrom, ALARM, { metric: 'disk:/b', alert_id: 'node/disk:/a/disk:/b/01' }),
    /^alert_id is /,
    'of one node by its beginning and of another one by its end',
  );
  for (const bad of [
    '',
    'cpu_percent/01',
    '/cpu_percent/01',
    'node/cpu_percent/',
    ' /cpu_percent/01',
    'node/disk_percent/01',
    `${'n'.repeat(500)}/cpu_percent/01`,
    'a/\n/b',
    null,
  ]) {
    t.match(reasonOf(alertFrom, ALARM, { alert_id: bad }), /^alert_id is .*; allowed: /, String(bad).slice(0, 20));
  }
  t.match(reasonOf(alertFrom, ALARM, { severity: 'FATAL' }), 'severity is "FATAL"; allowed: one of WARNING, ERROR, CRITICAL');
  for (const bad of ['', 'a b', 'm'.repeat(65), 'é', 3, 'disk:media', 'disk:/a\nb', `disk:/${'m'.repeat(251)}`])
    t.match(reasonOf(alertFrom, ALARM, { metric: bad }), /^metric is /);
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, 1e10, '1', null]) {
    t.match(reasonOf(alertFrom, ALARM, { value: bad }), /^value is /);
    t.match(reasonOf(alertFrom, ALARM, { threshold: bad }), /^threshold is /);
  }
  for (const bad of [1, 'true', null]) t.match(reasonOf(alertFrom, ALARM, { resolved: bad }), /^resolved is .*; allowed: true or false$/);
});

t.test('times become UTC with milliseconds; invalid times are refused', async (t) => {
  const became = (given: string): unknown => {
    const result = healthStatusFrom({ ...GOOD, timestamp: given });
    return result.ok ? result.value.timestamp : result.reason;
  };
  t.equal(became('2026-03-04T05:06:07Z'), '2026-03-04T05:06:07.000Z');
  t.equal(became('2026-03-04T05:06:07.123456+02:00'), '2026-03-04T03:06:07.123Z');
  t.equal(became('2026-03-04T05:06:07.5-11:30'), '2026-03-04T16:36:07.500Z');
  t.equal(became('1970-01-01T00:00:00.000Z'), '1970-01-01T00:00:00.000Z');
  t.equal(became('9999-12-31T23:59:59.999Z'), '9999-12-31T23:59:59.999Z');
  t.equal(became('2028-02-29T00:00:00Z'), '2028-02-29T00:00:00.000Z');
  const bad = [
    ...[
      '',
      'now',
      '2026-03-04',
      '2026-03-04T05:06:07',
      '1969-12-31T23:59:59.999Z',
      '1970-01-01T00:30:00+01:00',
      '9999-12-31T23:59:59-01:00',
    ],
    ...[
      '2026-02-29T00:00:00Z',
      '2026-02-29T00:00:00.000Z',
      '2026-13-01T00:00:00Z',
      '2026-03-04T25:00:00Z',
      '+012026-03-04T05:06:07Z',
      '2026-03-04T05:06:07Z\n',
    ],
    `2026-03-04T05:06:07.${'0'.repeat(5000)}Z`,
  ];
  for (const given of bad) t.match(became(given), /^timestamp is .*; allowed: a time in ISO 8601/, given.slice(0, 40));
});

t.test('arbitrary messages are refused or converted, and never throw', async (t) => {
  const hostile = fc.oneof(
    fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withTypedArray: true, withObjectString: true }),
    fc.string({ unit: 'binary', maxLength: 2000 }),
    fc.double(),
  );
  const fields = (layout: { fields: readonly (readonly [string, unknown])[] }): fc.Arbitrary<Record<string, unknown>> =>
    fc.record(Object.fromEntries(names(layout).map((field) => [field, hostile])), { requiredKeys: [] });
  /** Arbitrary values, arbitrary fields, or a valid message with one field replaced. */
  const messages = (good: object, layout: { fields: readonly (readonly [string, unknown])[] }): fc.Arbitrary<unknown> =>
    fc.oneof(
      hostile,
      fields(layout),
      fc.tuple(fc.constantFrom(...names(layout)), hostile).map(([field, value]) => ({ ...good, [field]: value })),
    );
  let taken = 0;
  let refused = 0;
  const holds = <T>(result: Checked<T>, sound: (value: T) => boolean): boolean => {
    if (result.ok) taken += 1;
    else refused += 1;
    return result.ok ? sound(result.value) : result.reason.length < 400 && result.reason.length > 0;
  };
  fc.assert(
    fc.property(messages(GOOD, HEALTH_STATUS), (message) =>
      holds(healthStatusFrom(message), (value) => {
        const line = JSON.stringify(value);
        return !line.includes('\n') && METRICS.every((metric) => value[metric] === null || Number.isFinite(value[metric]));
      }),
    ),
    { numRuns: runs(200, 4000), seed: SEED },
  );
  fc.assert(
    fc.property(messages(ALARM, ALERT), (message) =>
      holds(
        alertFrom(message),
        (value) => Number.isFinite(value.value) && Number.isFinite(value.threshold) && nodeOfAlertId(value.alert_id) !== '',
      ),
    ),
    { numRuns: runs(200, 4000), seed: SEED },
  );
  t.ok(taken > 10 && refused > 100, `${taken} taken, ${refused} refused`);
  const trap = new Proxy(
    {},
    {
      get: () => {
        throw new Error('no');
      },
    },
  );
  t.strictSame(healthStatusFrom(trap), { ok: false, reason: 'the message cannot be read' });
});
