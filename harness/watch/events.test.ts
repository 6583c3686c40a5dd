import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import { EventStream } from './events.ts';
import type { WatchListener } from './ports.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, visit: number) => void;

class Heard implements WatchListener {
  readonly statuses: string[] = [];
  readonly alerts: string[] = [];
  readonly notes: string[] = [];

  onStatus(by: string, { timestamp }: { timestamp: string }): void {
    this.statuses.push(`${by} ${timestamp.slice(17, 19)}`);
  }

  onAlert(by: string, { alert_id, resolved }: { alert_id: string; resolved: boolean }): void {
    this.alerts.push(`${by} ${alert_id} ${resolved}`);
  }

  onNote(text: string): void {
    this.notes.push(text);
  }
}

const status = (second: number, node = 'robot'): string =>
  JSON.stringify({ node_name: node, timestamp: `2026-03-04T05:06:${String(second).padStart(2, '0')}.000Z`, status: 'OK' });
const alert = (node: string, resolved: boolean): string =>
  JSON.stringify({
    alert_id: `${node}/cpu_percent/1`,
    severity: 'WARNING',
    metric: 'cpu_percent',
    timestamp: '2026-03-04T05:06:07.000Z',
    resolved,
  });
const event = (id: string, kind: string, data: string): string => `id: ${id}\nevent: ${kind}\ndata: ${data}\n\n`;
const open = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
};

/** A stream from a server that answers each visit as told. */
async function follow(t: Test, answer: Answer, options: { lastEventId?: string; silenceSeconds?: number; token?: string } = {}) {
  const asked: { path: string; last: string | undefined; token: string | undefined }[] = [];
  const server = createServer((request, response) => {
    asked.push({
      path: request.url ?? '',
      last: request.headers['last-event-id'] as string | undefined,
      token: request.headers.authorization,
    });
    answer(request, response, asked.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const heard = new Heard();
  const stream = new EventStream({
    rest: new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: options.token ?? null }),
    node: 'robot',
    hertz: 1,
    lastEventId: options.lastEventId ?? null,
    listener: heard,
    monotonicSeconds: () => performance.now() / 1000,
    ...(options.silenceSeconds === undefined ? {} : { silenceSeconds: options.silenceSeconds }),
  });
  t.teardown(async () => {
    await stream.stop();
    server.closeAllConnections();
    server.close();
  });
  await stream.start();
  const until = async (holds: () => boolean): Promise<void> => {
    const deadline = performance.now() + 30_000;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`it does not hold: ${JSON.stringify({ asked, heard })}`);
      await new Promise((later) => setTimeout(later, 10));
    }
  };
  return { asked, heard, stream, until };
}

t.test('tells the watched node alone, and what it is shown that is neither', async (t) => {
  const { asked, heard, stream, until } = await follow(
    t,
    (_request, response) => {
      open(response);
      response.write('retry: 2000\n\n');
      response.write(
        event('a', 'health', status(1)) + event('b', 'health', status(2, 'other')) + event('c', 'alert', alert('robot', false)),
      );
      response.write(
        event('d', 'alert', alert('other', false)) + event('e', 'health', '{}') + event('f', 'alert', 'x') + event('g', 'novel', 'x'),
      );
      response.write(event('h', 'alert', alert('robot', true)));
    },
    { token: 'secret' },
  );
  await until(() => heard.alerts.length === 2);
  t.same(heard.statuses, ['events 01']);
  t.same(heard.alerts, ['events robot/cpu_percent/1 false', 'events robot/cpu_percent/1 true']);
  t.match(heard.notes, [/no health status: \{\}/, /no alert: x/]);
  t.equal(heard.notes.length, 2);
  t.equal(stream.lastEventId, 'h');
  t.same(asked, [{ path: '/events?events=health,alert&node=robot', last: undefined, token: 'Bearer secret' }]);
});

t.test('goes on where it broke off: after an end, a cut connection, a refusal', async (t) => {
  const { asked, heard, stream, until } = await follow(
    t,
    (_request, response, visit) => {
      if (visit === 2) {
        response.writeHead(503, { 'Content-Type': 'application/problem+json' });
        response.end('{"code":"too_many_event_streams","detail":"close another stream"}');
        return;
      }
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)), () => {
        if (visit === 1) response.end();
        if (visit === 3) response.destroy();
      });
    },
    { lastEventId: 'id0' },
  );
  await until(() => heard.statuses.length === 3);
  t.same(heard.statuses, ['events 01', 'events 03', 'events 04']);
  t.same(
    asked.map(({ last }) => last),
    ['id0', 'id1', 'id1', 'id3'],
  );
  t.equal(stream.lastEventId, 'id4');
  t.match(heard.notes, [/broke off: the service ended it/, /is back after \d+\.\d s/, /broke off: /, /is back after/]);
});

t.test('a service that is away is no failure', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  const heard = new Heard();
  const rest = new RestClient({ base: `http://127.0.0.1:${port}`, token: null });
  const stream = new EventStream({ rest, node: 'robot', hertz: 200, lastEventId: null, listener: heard, monotonicSeconds: () => 0 });
  await stream.start();
  await new Promise((later) => setTimeout(later, 800));
  await stream.stop();
  t.match(heard.notes, [/broke off: .*ECONNREFUSED/], 'told once');
});

t.test('a place that is not known any more is given up, and that is told', async (t) => {
  const { asked, heard, until } = await follow(
    t,
    (request, response, visit) => {
      if (request.headers['last-event-id'] !== undefined) {
        response.writeHead(visit === 1 ? 410 : 400, { 'Content-Type': 'application/problem+json' });
        response.end('{"code":"gone","detail":"the place is gone"}');
        return;
      }
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)), () => visit === 2 && response.end());
    },
    { lastEventId: 'old' },
  );
  await until(() => heard.statuses.length === 2);
  t.same(
    asked.map(({ last }) => last),
    ['old', undefined, 'id2', undefined],
  );
  t.match(heard.notes[0], /cannot go on from old, and goes on from now: .*the place is gone/);
});

t.test('a connection on which nothing comes any more is dead, before an answer and after', async (t) => {
  const { asked, heard, until } = await follow(
    t,
    (_request, response, visit) => {
      if (visit === 1) return;
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)));
    },
    { silenceSeconds: 0.3 },
  );
  await until(() => heard.statuses.length >= 3);
  t.same(
    asked.slice(0, 4).map(({ last }) => last),
    [undefined, undefined, 'id2', 'id3'],
  );
  t.match(heard.notes, [/broke off: .*no answer within 0.3 s/, /is back/, /broke off: /]);
});

t.test('another server is told, not read', async (t) => {
  const { heard, until } = await follow(t, (_request, response) => response.end('<html>'));
  await until(() => heard.notes.length > 0);
  t.match(heard.notes, [/\/events answers with no type: is it edge-health\?/]);
});
