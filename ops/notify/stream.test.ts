import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alert.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { until } from '../../testkit/wait.ts';
import { eventParser, follow, type StreamEvent } from './stream.ts';

const TEXT =
  'retry: 2000\n\n: still here\n\nid: a_1\nevent: alert\ndata: {"x":1}\n\nid:a_2\r\nevent:alert\r\ndata: one\r\ndata: two\r\n\r\ndata: bare\n\nevent: alert\nid: torn';
const EVENTS: StreamEvent[] = [
  { id: 'a_1', kind: 'alert', data: '{"x":1}' },
  { id: 'a_2', kind: 'alert', data: 'one\ntwo' },
  { id: null, kind: 'message', data: 'bare' },
];

t.test('events, however the text is cut into pieces; what is torn is none', async () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: TEXT.length - 1 }), { maxLength: 20 }), (cuts) => {
      const events: StreamEvent[] = [];
      const read = eventParser((event) => events.push(event));
      let from = 0;
      for (const cut of [...cuts.sort((a, b) => a - b), TEXT.length]) {
        read(TEXT.slice(from, cut));
        from = cut;
      }
      return JSON.stringify(events) === JSON.stringify(EVENTS);
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('a stream without an end of a line does not fill the memory', async (t) => {
  const events: StreamEvent[] = [];
  const read = eventParser((event) => events.push(event));
  for (let i = 0; i < 50; i++) read('x'.repeat(100_000));
  read('\n\nid: 1\nevent: alert\ndata: y\n\n');
  t.same(events, [{ id: '1', kind: 'alert', data: 'y' }]);
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that answers as each test wants, and what following it gave. */
async function following(t: Test, answers: { events: Answer; alerts: Answer }, given: string | null) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers['last-event-id'] ?? '-'}`);
    (request.url?.startsWith('/events') ? answers.events : answers.alerts)(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ending = new AbortController();
  const seen = { asked, places: [given] as (string | null)[], alerts: [] as string[], open: [] as string[][], log: [] as string[] };
  const done = follow({
    rest: new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null }),
    log: (level, message) => seen.log.push(`${level} ${message}`),
    signal: ending.signal,
    place: () => seen.places.at(-1) ?? null,
    setPlace: (place) => seen.places.push(place),
    onAlert: (alert, place) => {
      seen.alerts.push(alert.alert_id);
      seen.places.push(place);
    },
    onOpen: (alerts) => seen.open.push(alerts.map(({ alert_id }) => alert_id)),
    settleMs: 50,
    backoffMs: 20,
  });
  t.teardown(async () => {
    ending.abort();
    server.closeAllConnections();
    server.close();
    await done;
  });
  return seen;
}

const alert = (id: string): Partial<Alert> => ({ alert_id: id });
const stream = (response: ServerResponse, text = ''): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`retry: 2000\n\n${text}`);
};
const listed: Answer = (request, response) => {
  const isFirst = !request.url?.includes('cursor');
  const headers: Record<string, string> = isFirst ? { link: '</alerts?resolved=false&cursor=x>; rel="next"' } : {};
  response.writeHead(200, headers).end(JSON.stringify({ data: [alert(isFirst ? 'one' : 'two')], count: 1 }));
};

t.test('without a place it takes one first; what is open is asked for when the stream is still, all pages', async (t) => {
  const seen = await following(
    t,
    {
      alerts: listed,
      events: ({ url }, response) =>
        stream(
          response,
          url === '/events' ? 'id: p0\nevent: health\ndata: {}\n\n' : `id: p1\nevent: alert\ndata: ${JSON.stringify(alert('a'))}\n\n`,
        ),
    },
    null,
  );
  await until('what is open was listed', () => seen.open.length > 0 && seen.alerts.length > 0, { describe: () => seen });
  // On a busy machine the stream may seem still before its first event, and what is open is requested twice.
  t.same(
    [...new Set(seen.asked)],
    ['/events -', '/events?events=alert p0', '/alerts?resolved=false&limit=1000 -', '/alerts?resolved=false&cursor=x -'],
  );
  t.same(seen.places, [null, 'p0', 'p1']);
  t.same(seen.alerts, ['a']);
  t.same(seen.open.at(-1), ['one', 'two']);
});

t.test('where it was cut it goes on from the last place; what is no JSON is asked for again', async (t) => {
  let count = 0;
  const seen = await following(
    t,
    {
      alerts: listed,
      events: (_, response) => {
        count += 1;
        stream(response, `id: p${count}\nevent: alert\ndata: ${count === 2 ? '{' : JSON.stringify(alert(`a${count}`))}\n\n`);
        if (count === 1) setTimeout(() => response.destroy(), 20);
      },
    },
    'p0',
  );
  await until('two alerts came', () => seen.alerts.length === 2, { describe: () => seen });
  t.same(seen.alerts, ['a1', 'a3']);
  t.same(
    seen.asked.filter((line) => line.startsWith('/events')),
    ['/events?events=alert p0', '/events?events=alert p1', '/events?events=alert p1'],
  );
});

t.test('a place that is no good any more is given up; what refuses is told once, and when it is back', async (t) => {
  let count = 0;
  const seen = await following(
    t,
    {
      alerts: (_, response) => response.writeHead(503).end(),
      events: ({ url }, response) => {
        count += 1;
        if (count === 1) response.writeHead(410).end('{"code":"place_ahead","detail":"ahead"}');
        else if (count === 2) response.writeHead(401).end('{"detail":"a token is needed"}');
        else stream(response, url === '/events' ? 'id: new\nevent: health\ndata: {}\n\n' : '');
      },
    },
    'old',
  );
  await until('the service answers again', () => seen.asked.includes('/events?events=alert new') && seen.log.length === 2, {
    describe: () => seen,
  });
  t.match(seen.log, [
    /^notice notifications: the service does not answer; .*410 ahead/,
    /^notice notifications: the service answers again/,
  ]);
  t.same(seen.places, ['old', null, 'new']);
  await until('open alerts were requested three times', () => seen.asked.filter((line) => line.startsWith('/alerts')).length >= 3, {
    describe: () => seen,
  });
  t.same(seen.open, [], 'what is open is asked for until it is known');
});
