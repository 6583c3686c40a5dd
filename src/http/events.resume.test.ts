import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import type { HistoryReader, Position, RecordCursor, RecordedEvent, RecordedPage, RecordedQuery } from '../core/ports.ts';
import { Semaphore } from './context.ts';
import { EventHub, formatId, isBeyond, parseId, type StreamFilter } from './events.ts';
import { type Clients, clientByAddress } from './shares.ts';

const clients: Clients = { clientOf: clientByAddress, lookUpUsers: async () => undefined };

const cursor: fc.Arbitrary<RecordCursor> = fc.record({
  segment: fc.integer({ min: 0, max: 2 ** 44 }),
  sequence: fc.integer({ min: 0, max: 2 ** 24 }),
});
const position: fc.Arbitrary<Position> = fc.record({ health: cursor, alert: cursor });

t.test('an id encodes the position and is short; other texts are rejected', async (t) => {
  fc.assert(
    fc.property(position, fc.nat(), (at, number) => {
      const id = formatId(at, number);
      t.same(parseId(id), at);
      return id.length < 60 && /^[0-9a-z._]+$/.test(id);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  for (const wrong of [
    '',
    'x',
    '1_2',
    '1.1_1.1',
    '1.1_1.1_1_1',
    '1.1_1.1_',
    '-1.1_1.1_1',
    '1.1_1.1_1 ',
    '1.1_1.1_A',
    `${'z'.repeat(11)}.1_1.1_1`,
    '1.1-1.1-1-1',
    '-1.1-1.1-1',
    '1772600000123.1-1772599000000.12-7',
    '1e3.1-1.1-1',
    `${'9'.repeat(16)}.1-1.1-1`,
    formatId(null, 5),
  ])
    t.equal(parseId(wrong), null, wrong);
});

t.test('of two different cursors, exactly one is beyond the other', async (t) => {
  fc.assert(
    fc.property(cursor, cursor, (a, b) => {
      const same = a.segment === b.segment && a.sequence === b.sequence;
      return [isBeyond(a, b), isBeyond(b, a)].filter((beyond) => beyond).length === (same ? 0 : 1);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.equal(isBeyond({ segment: 2, sequence: 0 }, { segment: 1, sequence: 9 }), true);
});

/** A store with these events that implements `recorded` of ports.ts. */
class Remembered {
  readonly asked: RecordedQuery[] = [];
  readonly #events: readonly RecordedEvent[];

  constructor(events: readonly RecordedEvent[]) {
    this.#events = events;
  }

  async recorded(query: RecordedQuery): Promise<RecordedPage> {
    this.asked.push(query);
    const after = { health: query.healthAfter, alert: query.alertAfter };
    const found = this.#events.filter((event) => {
      const since = after[event.kind];
      return since !== null && isBeyond(event.cursor, since) && (query.node === null || query.node === event.node);
    });
    return { events: found.slice(0, query.limit), more: found.length > query.limit };
  }
}

/** What a client receives when it resumes its stream after an id. */
async function resumed(hub: EventHub, lastEventId: string, filter: StreamFilter) {
  let text = '';
  const response = Object.assign(new EventEmitter(), {
    writeHead: () => undefined,
    end: (chunk = '') => {
      text += chunk;
      response.writableEnded = true;
    },
    write: (chunk: string) => {
      text += chunk;
    },
    writableEnded: false,
  });
  const request = { headers: {}, socket: { remoteAddress: '127.0.0.1' } } as IncomingMessage;
  await hub.open({ request, response: response as unknown as ServerResponse, store: new Semaphore(1) }, filter, lastEventId);
  const events = [...text.matchAll(/^id: (.+)\nevent: .+\ndata: (.+)$/gm)].map(([, id = '', json = '']) => ({ id, json }));
  return { events, ids: [...text.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id), hasEnded: response.writableEnded };
}

/** The events that a client receives from the store when it resumes its stream after an id. */
async function received(history: HistoryReader, lastEventId: string, filter: StreamFilter): Promise<{ id: string; json: string }[]> {
  const hub = new EventHub({ clients, history, max: 1 });
  const { events } = await resumed(hub, lastEventId, filter);
  hub.stop();
  return events;
}

const event: fc.Arbitrary<Omit<RecordedEvent, 'cursor'>> = fc.record({
  kind: fc.constantFrom('health' as const, 'health' as const, 'alert' as const),
  node: fc.constantFrom('a', 'b'),
  json: fc.uuid(),
});

t.test('from any position, a client gets the remaining events of its filter once and in order', async (t) => {
  const kinds = fc.constantFrom(['health', 'alert', 'shutdown'] as const, ['health'] as const, ['alert'] as const, ['shutdown'] as const);
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 30 }),
      kinds,
      fc.option(fc.constantFrom('a', 'b')),
      async (list, of, node) => {
        const events = list.map((one, i) => ({ ...one, cursor: { segment: 1000 + Math.floor(i / 7), sequence: 1 + (i % 7) } }));
        const store = new Remembered(events) as unknown as HistoryReader;
        const start: Position = { health: { segment: 0, sequence: 0 }, alert: { segment: 0, sequence: 0 } };
        const filter = { kinds: of, node };
        const all = await received(store, formatId(start, 0), filter);
        const json = (found: readonly { json: string }[]): string[] => found.map((one) => one.json);
        const wanted = events.filter(
          ({ kind, node: from }) => (of as readonly string[]).includes(kind) && (node === null || node === from),
        );
        t.same(json(all), json(wanted));
        for (const [i, { id }] of all.entries()) t.same(json(await received(store, id, filter)), json(wanted.slice(i + 1)));
      },
    ),
    { numRuns: runs(60, 600), seed: SEED },
  );
});

t.test('the position of an event kind outside of the filter does not advance', async (t) => {
  const store = new Remembered([{ kind: 'health', node: 'a', json: '1', cursor: { segment: 9, sequence: 9 } }]);
  const since: Position = { health: { segment: 1, sequence: 1 }, alert: { segment: 2, sequence: 2 } };
  const [event] = await received(store as unknown as HistoryReader, formatId(since, 0), { kinds: ['health'], node: null });
  t.same(parseId(event?.id ?? ''), { health: { segment: 9, sequence: 9 }, alert: since.alert });
  t.match(store.asked, [{ healthAfter: since.health, alertAfter: null, node: null }]);
});

t.test('a stream whose missed events cannot be read ends, and its client resumes it without a loss', async (t) => {
  const events = Array.from({ length: 2500 }, (_, i): RecordedEvent => {
    const kind = i % 50 === 0 ? 'alert' : 'health';
    return { kind, node: 'a', cursor: { segment: 1, sequence: i + 1 }, json: String(i) };
  });
  const store = new Remembered(events);
  let failures = 0;
  /** The first query of every connection fails, or the second one. */
  const failing = (query: number): HistoryReader => {
    let asked = 0;
    const recorded = async (of: RecordedQuery): Promise<RecordedPage> => {
      asked += 1;
      if (asked < query) return store.recorded(of);
      failures += 1;
      throw new Error('disk I/O error');
    };
    return { recorded } as unknown as HistoryReader;
  };
  const filter: StreamFilter = { kinds: ['health', 'alert', 'shutdown'], node: null };
  const begin = formatId({ health: { segment: 0, sequence: 0 }, alert: { segment: 0, sequence: 0 } }, 0);

  const none = new EventHub({ clients, history: failing(1), max: 1 });
  t.same(await resumed(none, begin, filter), { events: [], ids: [], hasEnded: true }, 'it ends without an event and without an id');
  t.equal(none.count, 0);
  none.stop();

  const got: string[] = [];
  let id = begin;
  while (got.length < events.length) {
    // A new hub each time: nothing is in memory, as after a restart.
    const hub = new EventHub({ clients, history: failing(2), max: 1 });
    const one = await resumed(hub, id, filter);
    t.equal(one.hasEnded, one.events.length === 1000, 'the last page needs no second query');
    t.equal(one.ids.at(-1), one.events.at(-1)?.id, 'the last id is that of the last event');
    got.push(...one.events.map(({ json }) => json));
    id = one.ids.at(-1) as string;
    hub.stop();
    if (one.events.length === 0) break;
  }
  t.same(
    got,
    events.map(({ json }) => json),
  );
  t.ok(failures >= 3);
});
