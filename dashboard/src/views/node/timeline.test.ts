import t from 'tap';
import type { Alert, StatusDocument } from '../../types.ts';
import { momentsIn, spansIn } from './timeline.ts';

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const change = (id: string, seconds: number, more: Partial<Alert> = {}): Alert => ({
  alert_id: `arm/cpu_percent/${id}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 90,
  threshold: 80,
  timestamp: at(seconds),
  resolved: false,
  ...more,
});

t.test('the changes of an alert are one span with its highest severity', async (t) => {
  const changes = [
    change('1', 10),
    change('1', 20, { severity: 'CRITICAL' }),
    change('1', 30),
    change('1', 40, { resolved: true }),
    change('2', 50),
  ];
  t.match(spansIn(changes, 'arm', 0, 100_000), [
    { id: 'arm/cpu_percent/1', severity: 'CRITICAL', fromMs: 10_000, toMs: 40_000 },
    { id: 'arm/cpu_percent/2', severity: 'WARNING', fromMs: 50_000, toMs: null },
  ]);
  t.same(spansIn(changes, 'leg', 0, 100_000), [], 'of this node only');
});

t.test('a span that overlaps the range is shown; one outside the range is omitted', async (t) => {
  const changes = [change('1', 10), change('1', 40, { resolved: true }), change('2', 90, { resolved: true }), change('3', 95)];
  t.same(
    spansIn(changes, 'arm', 50_000, 92_000).map(({ fromMs, id }) => [id.at(-1), fromMs]),
    [['2', Number.NEGATIVE_INFINITY]],
    'raised before the requested changes',
  );
});

t.test('an alert that was resolved after the range is not open', async (t) => {
  const end = change('1', 90, { resolved: true });
  t.match(spansIn([change('1', 10), end], 'arm', 0, 50_000), [{ fromMs: 10_000, toMs: 90_000 }]);
});

t.test('restarts and clock changes within the range are shown', async (t) => {
  const status = {
    started: at(20),
    clock_events: [
      { kind: 'step', timestamp: at(30), delta_seconds: 5 },
      { kind: 'suspend', timestamp: at(90), delta_seconds: 60 },
    ],
  } as unknown as StatusDocument;
  t.match(momentsIn(status, 0, 50_000), [
    { kind: 'restart', atMs: 20_000 },
    { kind: 'step', seconds: 5 },
  ]);
  t.same(momentsIn(null, 0, 50_000), []);
});
