import fc from 'fast-check';
import t from 'tap';
import type { Alert } from '../core/alert.ts';
import { METRICS } from '../core/metrics.ts';
import type { AlertPage, AlertQuery, HistoryPage, HistoryQuery, HistoryReader } from '../core/ports.ts';
import { isoUtc } from '../core/time.ts';
import { advance, formatId, isBeyond, type MissedEvent, missedSince, type Position, parseId } from './resume.ts';

/** The store's answers about these samples and changes of alerts, as ports.ts promises them. */
class Remembered implements HistoryReader {
  readonly samples: readonly number[];
  readonly changes: readonly Alert[];

  constructor(samples: readonly number[], changes: readonly Alert[] = []) {
    this.samples = samples;
    this.changes = changes;
  }

  async history({ fromMs, toMs, limit }: HistoryQuery): Promise<HistoryPage> {
    const rows = this.samples.map((at, n) => ({ at, n })).filter(({ at }) => at >= fromMs && at < toMs);
    let page = rows.slice(0, limit);
    // Rows of one time stay together.
    const next = rows[limit];
    if (next) page = page.filter(({ at }) => at < next.at);
    const column = (value: (n: number) => number): Float64Array => Float64Array.from(page.map(({ n }) => value(n)));
    const metrics = METRICS.map((_, m) => column((n) => (m === 3 ? Number.NaN : n)));
    return {
      count: page.length,
      timestampMs: Float64Array.from(page.map(({ at }) => at)),
      metrics,
      status: new Uint8Array(page.length),
      more: next !== undefined,
    };
  }

  async alerts({ range, after, limit }: AlertQuery): Promise<AlertPage> {
    const inRange = this.changes
      .filter(({ timestamp }) => Date.parse(timestamp) >= (range?.fromMs ?? 0) && Date.parse(timestamp) < (range?.toMs ?? 0))
      .toReversed();
    const start = after ? Number(after.key) : 0;
    const more = inRange.length > start + limit;
    return { alerts: inRange.slice(start, start + limit), next: more ? { timestampMs: 0, key: String(start + limit) } : null };
  }

  async aggregate(): Promise<never> {
    throw new Error('not asked for');
  }

  async clockEvents(): Promise<never> {
    throw new Error('not asked for');
  }

  state(): never {
    throw new Error('not asked for');
  }
}

const change = (ms: number, id: number): Alert => ({
  alert_id: `robot/cpu_percent/${id}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: id,
  threshold: 1,
  timestamp: isoUtc(ms),
  resolved: false,
});
const everything = { kinds: ['health', 'alert', 'shutdown'], node: null } as const;
const START: Position = { health: { ms: 0, count: 0 }, alert: { ms: 0, count: 0 } };

/** Everything after a position, as a client gets it part by part. */
async function replayed(
  store: HistoryReader,
  since: Position,
  filter: Parameters<typeof missedSince>[3] = everything,
): Promise<MissedEvent[]> {
  const found: MissedEvent[] = [];
  let position = since;
  for (;;) {
    const { events, more } = await missedSince(store, ['robot'], position, filter, 10_000_000);
    found.push(...events);
    position = events.at(-1)?.position ?? position;
    if (!more) return found;
    if (events.length === 0) throw new Error('more, but nothing came');
  }
}

t.test('an id tells the position, and nothing else is an id', async (t) => {
  const position = { health: { ms: 1_772_600_000_123, count: 1 }, alert: { ms: 1_772_599_000_000, count: 12 } };
  const id = formatId(position, 7);
  t.match(id, /^[\d.-]+$/);
  t.same(parseId(id), position);
  for (const wrong of [
    '',
    'x',
    '1-2',
    '1.1-1.1',
    '1.1-1.1-1-1',
    '1.1-1.1-',
    '-1.1-1.1-1',
    '1.1-1.1-1 ',
    '1e3.1-1.1-1',
    `${'9'.repeat(16)}.1-1.1-1`,
  ])
    t.equal(parseId(wrong), null, wrong);
});

t.test('marks only go forward, also when the clock does not', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 50 }), (times) => {
      let mark = { ms: 0, count: 0 };
      return times.every((ms) => {
        const next = advance(mark, ms);
        const forward = isBeyond(next, mark) && !isBeyond(mark, next) && !isBeyond(next, next);
        mark = next;
        return forward;
      });
    }),
  );
  t.same(advance({ ms: 5, count: 2 }, 3), { ms: 5, count: 3 });
});

t.test('from wherever a client stopped, it gets the rest of the samples, each once, in order', async (t) => {
  // Times that repeat: several samples of one millisecond.
  const gaps = fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(gaps, fc.nat(), async (steps, stop) => {
      let at = 100;
      const times = steps.map((step) => (at += step));
      const store = new Remembered(times);
      const all = await replayed(store, START);
      t.equal(all.length, times.length);
      const known = stop % times.length;
      const rest = await replayed(store, all[known]?.position as Position);
      t.same(
        rest.map(({ json }) => json),
        all.slice(known + 1).map(({ json }) => json),
      );
    }),
  );
});

t.test('more than comes in one go follows in the next, alerts in their places', async (t) => {
  const times = Array.from({ length: 3500 }, (_, n) => 1000 + n);
  const changes = [1000, 1500, 2500, 2500, 4400, 9000].map(change);
  const events = await replayed(new Remembered(times, changes), START);
  t.equal(events.length, 3506);
  const at = ({ json }: MissedEvent): number => Date.parse((JSON.parse(json) as { timestamp: string }).timestamp);
  t.same(
    events.map(at),
    events.map(at).toSorted((a, b) => a - b),
    'in order of time',
  );
  t.equal(new Set(events.map(({ kind, json }) => kind + json)).size, events.length);
  t.same(
    events.filter(({ kind }) => kind === 'alert').map(({ json }) => JSON.parse(json)),
    changes,
  );
  t.equal(events.at(-1)?.kind, 'alert', 'one that no sample followed as well');
  const unavailable = JSON.parse(events[0]?.json as string) as { temperature: unknown };
  t.equal(unavailable.temperature, null, 'NaN is null');
});

t.test('an alert that was published after a later sample is not passed over', async (t) => {
  const store = new Remembered([100, 101, 102], [change(100, 1)]);
  const since = { health: { ms: 102, count: 1 }, alert: { ms: 100, count: 0 } };
  t.same(
    (await replayed(store, since)).map(({ kind }) => kind),
    ['alert'],
  );
  t.same(await replayed(store, { ...since, alert: { ms: 100, count: 1 } }), [], 'and comes once');
});

t.test('of several alerts of one millisecond none is lost', async (t) => {
  const store = new Remembered([100], [change(100, 1), change(100, 2), change(100, 3)]);
  const since = (count: number): Position => ({ health: { ms: 100, count: 1 }, alert: { ms: 100, count } });
  t.equal((await replayed(store, since(0))).length, 3);
  t.equal((await replayed(store, since(1))).length, 3, 'nobody knows which one it had: all come again');
  t.equal((await replayed(store, since(3))).length, 0);
});

t.test('only what is asked for', async (t) => {
  const store = new Remembered([100, 200], [change(150, 1)]);
  const kinds = async (...of: ('health' | 'alert')[]): Promise<string[]> =>
    (await replayed(store, START, { kinds: of, node: 'robot' })).map(({ kind }) => kind);
  t.same(await kinds('health'), ['health', 'health']);
  t.same(await kinds('alert'), ['alert']);
  t.same(await kinds('alert', 'health'), ['health', 'alert', 'health']);
});
