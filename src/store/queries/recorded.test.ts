import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { compareCursors, type RecordCursor, type RecordedEvent } from '../../core/ports.ts';
import { DAY_MS, HOUR_MS, isoUtc, MINUTE_MS } from '../../core/time/time.ts';
import { change } from '../testing/alerts.ts';
import { testArchive } from '../testing/archive.ts';
import { row, toColumns, toStatus } from '../testing/rows.ts';
import { recorded } from './recorded.ts';

const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
const NODES = ['a', 'b', '/robots/arm'];
const NOTHING: RecordCursor = { segment: 0, sequence: 0 };

/** One record of a segment: a status of a node with a clock offset, or a change of an alert. */
type Step = { readonly node: string; readonly offsetMs: number } | 'alert';

interface Segment {
  readonly pauseMs: number;
  readonly steps: readonly Step[];
  readonly commits: boolean;
  readonly restarts: boolean;
}

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      node: fc.constantFrom(...NODES),
      // Clocks that agree, are off, and are set in between.
      offsetMs: fc.constantFrom(0, 0, 0, 5, -70_000, -HOUR_MS, 5 * HOUR_MS, -2 * DAY_MS),
    }),
  },
  { weight: 1, arbitrary: fc.constant('alert' as const) },
);
const segments: fc.Arbitrary<Segment[]> = fc.array(
  fc.record({
    pauseMs: fc.constantFrom(1, MINUTE_MS, MINUTE_MS, 3 * HOUR_MS),
    steps: fc.array(step, { maxLength: 25 }),
    commits: fc.boolean(),
    restarts: fc.boolean(),
  }),
  { minLength: 1, maxLength: 10 },
);

t.test('after any cursor, all later records are returned once and in order of recording, whatever the node clocks did', async (t) => {
  const cursors = fc.record({ health: fc.nat(), alert: fc.nat() });
  fc.assert(
    fc.property(segments, cursors, fc.integer({ min: 1, max: 7 }), fc.option(fc.constantFrom(...NODES)), (plan, stops, limit, node) => {
      const opened = testArchive(t, NOW, 1e9);
      const published: RecordedEvent[] = [];
      let segment = NOW - 3 * DAY_MS;
      for (const { pauseMs, steps, commits, restarts } of plan) {
        segment += pauseMs;
        opened.nowMs = segment;
        steps.forEach((one, i) => {
          const cursor = { segment, sequence: i + 1 };
          if (one === 'alert') {
            const alert = change(`${NODES[i % 3]}/cpu_percent/${segment}-${i}`, segment - i * HOUR_MS);
            opened.archive.saveAlert(alert, cursor);
            published.push({ kind: 'alert', node: NODES[i % 3] as string, cursor, json: JSON.stringify(alert) });
            return;
          }
          const sample = row(segment + one.offsetMs + i * 10, i / 4);
          opened.archive.append(segment, one.node, toColumns([sample], i + 1));
          published.push({ kind: 'health', node: one.node, cursor, json: JSON.stringify(toStatus(sample, one.node)) });
        });
        if (!commits) continue;
        opened.archive.commit(segment);
        if (restarts) opened.restart();
      }
      opened.nowMs = NOW;
      const place = (at: number): RecordCursor => published[at % (published.length + 1)]?.cursor ?? NOTHING;
      const since = { health: place(stops.health), alert: place(stops.alert) };
      const wanted = published.filter(
        (event) => compareCursors(event.cursor, since[event.kind]) > 0 && (node === null || event.node === node),
      );
      const found: RecordedEvent[] = [];
      let { health, alert } = since;
      for (;;) {
        const page = recorded(opened.archive, { healthAfter: health, alertAfter: alert, node, limit });
        if (page.events.length > limit) return false;
        found.push(...page.events);
        for (const { kind, cursor } of page.events) {
          if (kind === 'health') health = cursor;
          else alert = cursor;
        }
        if (!page.more) break;
        if (page.events.length === 0) return false;
      }
      const kinds = recorded(opened.archive, { healthAfter: null, alertAfter: since.alert, node, limit: 1000 });
      opened.close();
      t.same(found, wanted);
      return (
        kinds.events.every(({ kind }) => kind === 'alert') && kinds.events.length === wanted.filter(({ kind }) => kind === 'alert').length
      );
    }),
    { numRuns: runs(40, 1200), seed: SEED },
  );
});

t.test('a long period without records is skipped', async (t) => {
  const opened = testArchive(t, NOW);
  const early = NOW - 7 * DAY_MS;
  for (const [segment, at] of [
    [early, early],
    [NOW - MINUTE_MS, NOW - MINUTE_MS],
  ] as const) {
    opened.archive.append(segment, 'a', toColumns([row(at)]));
    opened.archive.commit(segment);
  }
  const { events, more } = recorded(opened.archive, {
    healthAfter: { segment: early, sequence: 1 },
    alertAfter: NOTHING,
    node: null,
    limit: 10,
  });
  t.same([events.length, more], [1, false]);
  t.match(events[0]?.json, isoUtc(NOW - MINUTE_MS));
  const ahead = { segment: NOW + DAY_MS, sequence: 0 };
  t.same(recorded(opened.archive, { healthAfter: ahead, alertAfter: ahead, node: null, limit: 10 }), { events: [], more: false });
});

t.test('the last segment is found also after the clock was set back', async (t) => {
  const opened = testArchive(t, NOW);
  t.equal(opened.archive.lastSegment(), 0);
  opened.archive.append(NOW, 'a', toColumns([row(NOW)]));
  opened.archive.commit(NOW);
  t.equal(opened.archive.lastSegment(), NOW);
  opened.nowMs = NOW - HOUR_MS;
  opened.archive.append(NOW + 1, 'a', toColumns([row(NOW - HOUR_MS)]));
  opened.archive.commit(NOW + 1);
  t.equal(opened.archive.lastSegment(), NOW + 1);
  opened.archive.saveAlert(change(`${opened.localNode}/cpu_percent/1`, NOW - HOUR_MS), { segment: NOW + 2, sequence: 1 });
  t.equal(opened.archive.lastSegment(), NOW + 2);
});

t.test('remote nodes are returned with their last receive time and latest time stamps in order of arrival', async (t) => {
  const opened = testArchive(t, NOW);
  t.same(opened.archive.remoteNodes(), [], 'an archive without a local node lists no remote nodes');
  opened.localNode = 'a';
  opened.restart();
  const minutes = Array.from({ length: 30 }, (_, i) => NOW - (30 - i) * MINUTE_MS);
  for (const segment of minutes) {
    for (const [node, offsetMs] of [
      ['a', 0],
      ['level', 0],
      ['ahead', 2 * HOUR_MS],
    ] as const)
      opened.archive.append(segment, node, toColumns([row(segment + offsetMs), row(segment + offsetMs + 30_000)]));
    // The node's clock is set back in between.
    const isSet = segment >= NOW - 5 * MINUTE_MS;
    opened.archive.append(segment, 'set', toColumns([row(segment + (isSet ? -3 * DAY_MS : 0))]));
    opened.archive.commit(segment);
  }
  opened.archive.append(NOW, 'waiting', toColumns([row(NOW)]));
  for (const restarts of [false, true]) {
    if (restarts) opened.restart();
    const remoteNodes = new Map(opened.archive.remoteNodes().map((node) => [node.name, node]));
    const last = minutes.at(-1) as number;
    t.same([...remoteNodes.keys()].sort(), restarts ? ['ahead', 'level', 'set'] : ['ahead', 'level', 'set', 'waiting']);
    t.same(
      remoteNodes.get('level')?.recent.map(({ ms }) => ms),
      minutes.slice(-6).flatMap((at) => [at, at + 30_000]),
    );
    t.same(
      remoteNodes
        .get('set')
        ?.recent.map(({ ms }) => ms)
        .slice(-6),
      [NOW - 6 * MINUTE_MS, ...minutes.slice(-5).map((at) => at - 3 * DAY_MS)],
      'in order of arrival',
    );
    for (const name of ['ahead', 'level', 'set'])
      t.ok(Math.abs((remoteNodes.get(name)?.lastSeenMs as number) - last) <= 5 * MINUTE_MS, name);
  }
});

t.test('a name that moves from one machine to another is handled', async (t) => {
  const opened = testArchive(t, NOW);
  const add = (node: string, at: number): void => {
    opened.archive.append(at, node, toColumns([row(at)]));
    opened.archive.commit(at);
  };
  const remoteNodes = (): string[] => opened.archive.remoteNodes().map(({ name }) => name);
  opened.localNode = 'a';
  opened.restart();
  add('a', NOW - 5000);
  add('b', NOW - 4000);
  t.same(remoteNodes(), ['b']);
  opened.localNode = 'b';
  opened.restart();
  t.same(remoteNodes(), [], 'a former name of this machine is not a remote node');
  add('b', NOW - 3000);
  add('a', NOW - 2000);
  t.same(remoteNodes(), ['a']);
  opened.localNode = 'c';
  opened.restart();
  t.same(remoteNodes(), ['a']);
});
