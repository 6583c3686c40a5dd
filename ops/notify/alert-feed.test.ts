import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { until } from '../../testkit/wait.ts';
import { followAlerts } from './alert-feed.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * A server that responds as each test defines, and what the feed reported. Changes of alerts are those of `recorded`; cursors count them.
 */
async function following(t: Test, answers: { events: Answer; alerts: Answer }, given: string | null) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers['last-event-id'] ?? '-'}`);
    if (request.url?.startsWith('/events')) answers.events(request, response);
    else if (request.url?.startsWith('/alerts?changes=true')) changes(request, response);
    else answers.alerts(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ending = new AbortController();
  const recorded: string[] = [];
  /** Two changes per page. */
  const changes: Answer = ({ url }, response) => {
    const after = Number(new URL(url ?? '', 'http://localhost').searchParams.get('after')?.replace('p', ''));
    if (Number.isNaN(after)) return response.writeHead(410).end('{"code":"cursor_ahead","detail":"ahead"}');
    const data = recorded.slice(after, after + 2);
    const place = after + data.length;
    const more: Record<string, string> = place < recorded.length ? { link: `</alerts?changes=true&after=p${place}>; rel="next"` } : {};
    response.writeHead(200, { 'last-event-id': `p${place}`, ...more }).end(JSON.stringify({ data: data.map(alert), count: data.length }));
  };
  const seen = {
    asked,
    recorded,
    cursors: [given] as (string | null)[],
    alerts: [] as string[],
    open: [] as string[][],
    log: [] as string[],
    links: [] as string[],
  };
  const done = followAlerts({
    rest: new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null }),
    log: (level, message) => seen.log.push(`${level} ${message}`),
    signal: ending.signal,
    cursor: () => seen.cursors.at(-1) ?? null,
    setCursor: (cursor) => seen.cursors.push(cursor),
    onAlerts: (alerts, cursor) => {
      seen.alerts.push(...alerts.map(({ alert_id }) => alert_id));
      seen.cursors.push(cursor);
    },
    onLink: (link) => seen.links.push(link),
    onOpen: (alerts) => seen.open.push(alerts.map(({ alert_id }) => alert_id)),
    settleMs: 50,
    backoffMs: 20,
    pollMs: 40,
  });
  t.teardown(async () => {
    ending.abort();
    server.closeAllConnections();
    server.close();
    await done;
  });
  return seen;
}

const alert = (id: string): Alert => ({
  ...{ alert_id: id, severity: 'WARNING', metric: 'cpu_percent', value: 85, threshold: 80 },
  ...{ timestamp: '2026-03-04T05:06:07.000Z', resolved: false },
});
const stream = (response: ServerResponse, text = ''): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`retry: 2000\n\n${text}`);
};
const listed: Answer = (request, response) => {
  const isFirst = !request.url?.includes('cursor');
  const headers: Record<string, string> = isFirst ? { link: '</alerts?resolved=false&cursor=x>; rel="next"' } : {};
  response.writeHead(200, headers).end(JSON.stringify({ data: [alert(isFirst ? 'one' : 'two')], count: 1 }));
};

t.test('without a cursor requests one first, then all pages of open alerts once the stream is idle', async (t) => {
  const seen = await following(
    t,
    {
      alerts: listed,
      events: (_, response) => stream(response, `id: p1\nevent: alert\ndata: ${JSON.stringify(alert('a'))}\n\n`),
    },
    null,
  );
  await until('what is open was listed', () => seen.open.length > 0 && seen.alerts.length > 0, { describe: () => seen });
  // On a busy machine the stream may seem idle before its first event, so that open alerts are requested twice.
  t.same(
    [...new Set(seen.asked)],
    [
      '/alerts?changes=true&after=0&limit=500 -',
      '/events?events=alert p0',
      '/alerts?resolved=false&limit=1000 -',
      '/alerts?resolved=false&cursor=x -',
    ],
  );
  t.same(seen.cursors, [null, 'p0', 'p1']);
  t.same(seen.alerts, ['a']);
  t.same(seen.open.at(-1), ['one', 'two']);
});

t.test('resumes after the last cursor when disconnected, and requests an event again if it is not JSON', async (t) => {
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

t.test('replaces a lost cursor, and reports a refusal and its end once each', async (t) => {
  let count = 0;
  const seen = await following(
    t,
    {
      alerts: (_, response) => response.writeHead(503).end(),
      events: (_, response) => {
        count += 1;
        if (count === 1) response.writeHead(410).end('{"code":"cursor_ahead","detail":"ahead"}');
        else if (count === 2) response.writeHead(401).end('{"detail":"a token is needed"}');
        else stream(response);
      },
    },
    'old',
  );
  seen.recorded.push('past');
  await until('the service answers again', () => seen.asked.includes('/events?events=alert p1') && seen.log.length === 2, {
    describe: () => seen,
  });
  t.match(seen.log, [/^notice notifications: no response from the service; .*503/, /^notice notifications: the service responds again/]);
  t.same(seen.links, ['unreachable', 'stream']);
  t.same(seen.cursors, ['old', null, 'p1']);
  t.same(seen.alerts, [], 'what lies before the first cursor is not notified');
  await until('open alerts were requested three times', () => seen.asked.filter((line) => line.includes('resolved=false')).length >= 3, {
    describe: () => seen,
  });
  t.same(seen.open, [], 'open alerts are requested until they are received');
});

t.test('polls alerts without the stream, each change once, and the stream continues from there', async (t) => {
  const refusals: Answer[] = [
    (_, response) => response.writeHead(503).end('{"code":"too_many_event_streams","detail":"close another stream"}'),
    (_, response) => response.writeHead(401).end('{"detail":"a token is needed"}'),
    (_, response) => response.socket?.resetAndDestroy(),
    (_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
  ];
  let isRefused = true;
  let count = 0;
  const seen = await following(
    t,
    {
      alerts: (_, response) => response.writeHead(200).end(JSON.stringify({ data: [alert('open')], count: 1 })),
      events: (request, response) => {
        if (isRefused) return refusals[count++ % refusals.length]?.(request, response);
        stream(response, `id: p9\nevent: alert\ndata: ${JSON.stringify(alert('live'))}\n\n`);
      },
    },
    null,
  );
  await until('it has a cursor', () => seen.cursors.at(-1) === 'p0' && seen.open.length > 0, { describe: () => seen });
  seen.recorded.push('a', 'b', 'c', 'd', 'e');
  await until('they were polled', () => seen.alerts.length >= 5 && count > 2 * refusals.length, { describe: () => seen });
  isRefused = false;
  await until('the stream is open', () => seen.alerts.includes('live'), { describe: () => seen });
  t.same(seen.alerts, ['a', 'b', 'c', 'd', 'e', 'live']);
  t.same(seen.open[0], ['open']);
  t.ok(seen.asked.includes('/events?events=alert p5'), 'the stream resumes where polling ended');
  t.same(seen.links, ['polling', 'stream']);
  t.match(seen.log, [
    /^warning notifications: event stream not available, polling alerts/,
    /^notice notifications: event stream available again/,
  ]);
});

t.test('reads the changes that a resumed stream cannot deliver, and reports if they cannot be read at all', async (t) => {
  let isReadable = false;
  const seen = await following(
    t,
    {
      alerts: (_, response) => response.writeHead(isReadable ? 200 : 503).end(JSON.stringify({ data: [], count: 0 })),
      events: (_, response) => {
        stream(response);
        response.end();
      },
    },
    'p0',
  );
  await until('it is reported', () => seen.links.includes('unreachable'), { describe: () => seen });
  t.equal(seen.open.length, 0);
  isReadable = true;
  seen.recorded.push('a', 'b', 'c');
  await until('they were read', () => seen.alerts.length >= 3, { describe: () => seen });
  t.same(seen.alerts, ['a', 'b', 'c']);
  const asked = seen.asked.length;
  await until('the stream is opened again', () => seen.asked.slice(asked).includes('/events?events=alert p3'), { describe: () => seen });
});

t.test('detects another database while polling as well', async (t) => {
  const seen = await following(
    t,
    {
      alerts: (_, response) => response.writeHead(200).end(JSON.stringify({ data: [alert('open')], count: 1 })),
      events: (_, response) => response.writeHead(503).end(),
    },
    'unknown',
  );
  seen.recorded.push('past');
  await until('what is open was listed', () => seen.open.length > 0, { describe: () => seen });
  t.same(seen.cursors, ['unknown', null, 'p1']);
  t.same(seen.alerts, []);
});
