import fc from 'fast-check';
import { type Alert, nodeOfAlertId, SEVERITIES } from '../../core/alerts/alert.ts';
import type { AlertCursor, AlertPage, AlertQuery } from '../../core/ports.ts';
import { DAY_MS, isoUtc } from '../../core/time/time.ts';

export const NOW = Date.parse('2026-03-04T12:00:00Z');

export const ALL: AlertQuery = {
  node: null,
  severity: null,
  metric: null,
  resolved: null,
  range: null,
  changes: false,
  limit: 1000,
  after: null,
  nowMs: NOW,
};

export const EVER = { fromMs: 0, toMs: NOW + DAY_MS };

export function change(id: string, timestampMs: number, more: Partial<Alert> = {}): Alert {
  return {
    alert_id: id,
    severity: 'WARNING',
    metric: 'cpu_percent',
    value: 85,
    threshold: 80,
    timestamp: isoUtc(timestampMs),
    resolved: false,
    ...more,
  };
}

/** Follows the cursor to the end, as a REST client does. */
export function allPages(list: (query: AlertQuery) => AlertPage, query: AlertQuery): Alert[] {
  const found: Alert[] = [];
  let after: AlertCursor | null = null;
  for (let page = 0; page < 1000; page += 1) {
    const { alerts, next } = list({ ...query, after });
    if (alerts.length > query.limit) throw new Error('a page beyond its limit');
    found.push(...alerts);
    if (next === null) return found;
    after = next;
  }
  throw new Error('the pages have no end');
}

interface Episode {
  readonly node: string;
  readonly metric: string;
  readonly changes: readonly Omit<Alert, 'alert_id' | 'metric'>[];
}

const episode: fc.Arbitrary<Episode> = fc
  .record({
    node: fc.constantFrom('a', 'b', '/robots/arm'),
    metric: fc.constantFrom('cpu_percent', 'temperature'),
    // Coarse times, so that many changes share one; the clock is occasionally set back.
    raisedMs: fc.integer({ min: 0, max: 40 }).map((step) => NOW - step * 3 * 3_600_000),
    severities: fc.array(fc.constantFrom(...SEVERITIES), { minLength: 1, maxLength: 4 }),
    steps: fc.array(fc.constantFrom(1000, 3_600_000, 7_200_000, -1000, -3_600_000), { minLength: 5, maxLength: 5 }),
    resolved: fc.boolean(),
  })
  .map(({ node, metric, raisedMs, severities, steps, resolved }) => {
    let at = raisedMs;
    const changes = severities.map((severity, i) => {
      at += i === 0 ? 0 : (steps[i] as number);
      return { severity, value: i, threshold: 80, timestamp: isoUtc(at), resolved: false };
    });
    const last = changes.at(-1);
    if (resolved && last) changes.push({ ...last, timestamp: isoUtc(at + (steps[0] as number)), resolved: true });
    return { node, metric, changes };
  });

/** Changes of many episodes in order of publication: each episode's in its own order, interleaved. */
export const history: fc.Arbitrary<Alert[]> = fc.array(fc.tuple(episode, fc.nat(1000)), { maxLength: 25, size: 'max' }).map((episodes) =>
  episodes
    .flatMap(([{ node, metric, changes }, start], i) =>
      distinct(changes).map((one, n) => ({ sequence: start + n * 40, alert: { ...one, metric, alert_id: `${node}/${metric}/${i}` } })),
    )
    .sort((a, b) => a.sequence - b.sequence)
    .map(({ alert }) => alert),
);

/** Two changes of an episode at the same time differ not only in their value. */
function distinct(changes: Episode['changes']): Episode['changes'] {
  const key = ({ timestamp, severity, resolved }: Episode['changes'][number]): string => `${timestamp} ${severity} ${resolved}`;
  return changes.filter((one, i) => changes.findIndex((other) => key(other) === key(one)) === i);
}

/** The expected listing, computed naively from everything that was published. */
export function expectedAlerts(published: readonly Alert[], query: AlertQuery): Alert[] {
  const ms = (alert: Alert): number => Date.parse(alert.timestamp);
  const episodes = new Map<string, Alert[]>();
  for (const alert of published) episodes.set(alert.alert_id, [...(episodes.get(alert.alert_id) ?? []), alert]);
  const inRange = (changes: Alert[]): boolean => {
    const last = changes.at(-1) as Alert;
    const raisedMs = Math.min(...changes.map(ms));
    if (!query.range) return !last.resolved || ms(last) >= query.nowMs - DAY_MS;
    return raisedMs < query.range.toMs && (!last.resolved || ms(last) >= query.range.fromMs);
  };
  const changeRange = query.range ?? { fromMs: query.nowMs - DAY_MS, toMs: Number.MAX_SAFE_INTEGER };
  const listed = query.changes
    ? published.filter((alert) => ms(alert) >= changeRange.fromMs && ms(alert) < changeRange.toMs)
    : [...episodes.values()].filter(inRange).map((changes) => changes.at(-1) as Alert);
  const key = (alert: Alert): string => (query.changes ? `${alert.alert_id}|${alert.severity}${alert.resolved ? 1 : 0}` : alert.alert_id);
  return listed
    .filter((alert) => query.node === null || nodeOfAlertId(alert.alert_id) === query.node)
    .filter((alert) => query.severity === null || alert.severity === query.severity)
    .filter((alert) => query.metric === null || alert.metric === query.metric)
    .filter((alert) => query.resolved === null || alert.resolved === query.resolved)
    .sort((a, b) => ms(b) - ms(a) || (key(a) < key(b) ? 1 : -1));
}

const range = fc
  .tuple(fc.integer({ min: 0, max: 130 }), fc.integer({ min: 1, max: 130 }))
  .map(([from, length]) => ({ fromMs: NOW - from * 3_600_000, toMs: NOW - (from - length) * 3_600_000 }));

export const query: fc.Arbitrary<AlertQuery> = fc.record({
  node: fc.option(fc.constantFrom('a', '/robots/arm', 'nobody'), { freq: 2 }),
  severity: fc.option(fc.constantFrom(...SEVERITIES), { freq: 2 }),
  metric: fc.option(fc.constantFrom('cpu_percent', 'temperature'), { freq: 2 }),
  resolved: fc.option(fc.boolean(), { freq: 2 }),
  range: fc.option(range),
  changes: fc.boolean(),
  limit: fc.integer({ min: 1, max: 8 }),
  after: fc.constant(null),
  nowMs: fc.constant(NOW),
});
