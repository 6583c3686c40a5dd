import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { eventParser, followEvents, type ServerEvent } from './event-stream.ts';
import { RestClient } from './rest.ts';

fc.configureGlobal({ seed: SEED });

function read(pieces: readonly string[]): ServerEvent[] {
  const events: ServerEvent[] = [];
  const parse = eventParser((event) => events.push(event));
  for (const piece of pieces) parse(piece);
  return events;
}

const HEAD = 'retry: 2000\n\n';

t.test('parses events in the format of the service', async (t) => {
  const text = `${HEAD}id: a_1\nevent: health\ndata: {"x":1}\n\n: heartbeat\n\nid: a_2\nevent: alert\ndata: {}\n\n`;
  t.same(read([text]), [
    { id: 'a_1', event: 'health', data: '{"x":1}' },
    { id: 'a_2', event: 'alert', data: '{}' },
  ]);
});

t.test('follows the standard: CRLF, several lines of data, fields without a value, unknown fields, an incomplete last event', async (t) => {
  t.same(read(['id:7\r\ndata\r\ndata:  b\r\nfoo: x\r\n\r\nevent: e\r\ndata: c\r\n\r\nevent: none\r\n\r\n']), [
    { id: '7', event: 'message', data: '\n b' },
    { id: null, event: 'e', data: 'c' },
  ]);
  t.same(read(['id: a\0b\ndata: 1\n\n']), [{ id: null, event: 'message', data: '1' }], 'an id with NUL is ignored');
  t.same(read(['data: half\n']), [], 'an event without its empty line is ignored');
});

t.test('parses chunks of any size', async (t) => {
  const events = Array.from({ length: 20 }, (_, at) => ({ id: `x_${at}`, event: at % 3 ? 'health' : 'alert', data: `{"n":${at}}` }));
  for (const end of ['\n', '\r\n']) {
    const text =
      HEAD +
      events.map(({ data, event, id }) => [`id: ${id}`, `event: ${event}`, `data: ${data}`, '', ''].join(end)).join(`:x${end}${end}`);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 40 }), (cuts) => {
        const at = [0, ...cuts, text.length].sort((a, b) => a - b);
        t.same(read(at.slice(1).map((to, i) => text.slice(at[i], to))), events);
      }),
      { numRuns: runs(30, 500) },
    );
  }
});

t.test('an endless event does not exhaust the memory', async (t) => {
  const flood = (text: string): void => {
    const parse = eventParser(() => undefined);
    for (let i = 0; i < 200; i += 1) parse(text.repeat(20_000));
  };
  t.throws(() => flood('data: x\n'), /more than 1000000 characters/);
  t.throws(() => {
    const parse = eventParser(() => undefined);
    parse('data: ');
    for (let i = 0; i < 200; i += 1) parse('x'.repeat(20_000));
  }, /more than 1000000 characters/);
  t.throws(() => flood('x'), /more than 1000000 characters/);
});

type Answer = (request: IncomingMessage, response: ServerResponse, visit: number) => void;

interface Followed {
  readonly asked: (string | undefined)[];
  readonly events: string[];
  readonly closed: (string | null)[];
  readonly lost: string[];
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

/** A server that responds to each connection with `answer`, on a port or a local socket, and a client that follows its stream. */
async function follow(
  t: Test,
  answer: Answer,
  { cursor = null as string | null, dataTimeoutSeconds = 600, socket = false, minPauseMs = 20 } = {},
): Promise<Followed> {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers['last-event-id'] as string | undefined);
    answer(request, response, asked.length);
  });
  const path = join(temporaryFolder(t), 'rest.sock');
  if (socket) server.listen(path);
  else server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = socket ? `unix:${path}` : `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const seen = { asked, events: [] as string[], closed: [] as (string | null)[], lost: [] as string[], ending: new AbortController() };
  let lastEventId = cursor;
  const done = followEvents({
    rest: new RestClient({ base, token: null }),
    path: '/events?events=alert',
    signal: seen.ending.signal,
    lastEventId: () => lastEventId,
    onOpen: () => undefined,
    onEvent: ({ data, id }) => {
      if (data === 'refused') throw new Error('not an alert');
      seen.events.push(data);
      if (id !== null) lastEventId = id;
    },
    onCursorLost: ({ message }) => {
      seen.lost.push(message);
      lastEventId = null;
    },
    onClose: (error) => {
      seen.closed.push(error?.message ?? null);
    },
    minPauseMs,
    maxPauseMs: 2 * minPauseMs,
    dataTimeoutSeconds,
  });
  t.teardown(async () => {
    seen.ending.abort();
    await done;
    server.closeAllConnections();
    server.close();
  });
  return { ...seen, done };
}

const open = (response: ServerResponse, text = HEAD): ServerResponse => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).write(text);
  return response;
};
const event = (id: number): string => `id: id${id}\ndata: data${id}\n\n`;

for (const socket of [false, true]) {
  t.test(`resumes after each end, disconnection and refusal, over ${socket ? 'a local socket' : 'TCP'}, until it is aborted`, async (t) => {
    const { asked, closed, done, ending, events } = await follow(
      t,
      (_request, response, visit) => {
        if (visit === 2) return response.writeHead(503).end('{"code":"too_many_event_streams","detail":"close another stream"}');
        const stream = open(response, HEAD + event(visit));
        if (visit === 1) stream.end();
        if (visit === 3) stream.write(':\n', () => stream.destroy()); // Disconnected after everything was sent.
        return undefined;
      },
      { cursor: 'id0', socket },
    );
    await until('three events', () => events.length === 3, { describe: () => ({ asked, closed, events }) });
    t.same(events, ['data1', 'data3', 'data4']);
    t.same(asked, ['id0', 'id1', 'id1', 'id3']);
    t.match(closed, [null, /503 close another stream/, /aborted|ECONNRESET/]);
    ending.abort();
    await done;
    t.equal(closed.length, 3, 'an abort is no failure');
  });
}

t.test('a connection without data is closed, before its first bytes and later; keep-alive comments prevent this', async (t) => {
  let keptOpen = 0;
  const { asked, closed } = await follow(
    t,
    (_request, response, visit) => {
      if (visit === 1) return;
      if (visit === 2) return void response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      open(response);
      let comments = 0;
      const timer = setInterval(() => {
        comments += 1;
        // A busy machine may miss the first of them, and connect again.
        if (visit >= 4) keptOpen = Math.max(keptOpen, comments);
        if (visit >= 4 || comments < 10) response.write(':\n\n');
      }, 50);
      response.on('close', () => clearInterval(timer));
    },
    { dataTimeoutSeconds: 0.3 },
  );
  await until('a fourth connection', () => asked.length >= 4, { describe: () => closed });
  t.match(closed, [/no response within 0\.3 s/, /no data for 0\.3 s/, /no data for 0\.3 s/]);
  await until('a connection is kept for three timeouts by comments', () => keptOpen >= 18);
});

t.test('a server that ends the stream can request a shorter pause', async (t) => {
  const { asked } = await follow(
    t,
    (_request, response, visit) => {
      open(response, `retry: 0\n\n${event(visit)}`);
      if (visit < 3) response.end();
    },
    { minPauseMs: 3_600_000 },
  );
  await until('three connections', () => asked.length === 3, { describe: () => asked });
  t.same(asked, [undefined, 'id1', 'id2']);
});

t.test('after a lost cursor it reconnects at once, but only once', async (t) => {
  const { asked, closed, lost } = await follow(
    t,
    (request, response) => {
      if (request.headers['last-event-id'] === undefined) open(response);
      else response.writeHead(410).end('{"code":"cursor_gone","detail":"the id is unknown"}');
    },
    { cursor: 'old' },
  );
  await until('a second connection', () => asked.length === 2);
  t.same(asked, ['old', undefined]);
  t.match(lost, [/410 the id is unknown/]);
  t.same(closed, []);
});

t.test('a response of another program and a rejected event end the connection', async (t) => {
  const { closed } = await follow(t, (_request, response, visit) => {
    if (visit === 1) response.end('<html>');
    else if (visit === 2) response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end();
    else if (visit === 3) open(response, 'data: refused\n\n');
    else {
      open(response, 'data: ');
      const flood = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', flood);
      flood();
    }
  });
  await until('four connections', () => closed.length >= 4, { describe: () => closed });
  t.match(closed, [
    /^http:\/\/127\.0\.0\.1:\d+\/events answers with no type: is it edge-health\?$/,
    /ended before its first line/,
    /not an alert/,
    /an event of more than 1000000 characters/,
  ]);
});
