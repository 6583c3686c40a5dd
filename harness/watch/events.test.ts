import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import { until } from '../../testkit/wait.ts';
import { EventStream } from './events.ts';
import type { WatchListener } from './ports.ts';

// Nearly all of the time they wait for the pause before another attempt.
t.jobs = 6;

/** No server of these tests stays away for so long. */
const LONG_SECONDS = 600;

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
async function follow(
  t: Test,
  answer: Answer,
  options: { lastEventId?: string; monotonicSeconds?: () => number; silenceSeconds?: number; token?: string } = {},
) {
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
    monotonicSeconds: options.monotonicSeconds ?? (() => performance.now() / 1000),
    silenceSeconds: options.silenceSeconds ?? LONG_SECONDS,
  });
  t.teardown(async () => {
    await stream.stop();
    server.closeAllConnections();
    server.close();
  });
  await stream.start();
  const received = (what: string, holds: () => boolean): Promise<true> => until(what, holds, { describe: () => ({ asked, heard }) });
  return { asked, heard, stream, received };
}

t.test('tells the watched node alone, and what it is shown that is neither', async (t) => {
  const { asked, heard, stream, received } = await follow(
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
  await received('heard.alerts.length === 2', () => heard.alerts.length === 2);
  t.same(heard.statuses, ['events 01']);
  t.same(heard.alerts, ['events robot/cpu_percent/1 false', 'events robot/cpu_percent/1 true']);
  t.match(heard.notes, [/no health status: \{\}/, /no alert: x/]);
  t.equal(heard.notes.length, 2);
  t.equal(stream.lastEventId, 'h');
  t.same(asked, [{ path: '/events?events=health,alert&node=robot', last: undefined, token: 'Bearer secret' }]);
});

t.test('goes on where it broke off: after an end, a cut connection, a refusal', async (t) => {
  const { asked, heard, stream, received } = await follow(
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
  await received('heard.statuses.length === 3', () => heard.statuses.length === 3);
  t.same(heard.statuses, ['events 01', 'events 03', 'events 04']);
  t.same(
    asked.map(({ last }) => last),
    ['id0', 'id1', 'id1', 'id3'],
  );
  t.equal(stream.lastEventId, 'id4');
  t.match(heard.notes, [/broke off: the service ended it/, /is back after \d+\.\d s/, /broke off: /, /is back after/]);
});

t.test('a stream that the service ends when it is old is no break: it goes on from the last event', async (t) => {
  let seconds = 0;
  const { asked, heard, received } = await follow(
    t,
    (_request, response, visit) => {
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)), () => {
        seconds += 60;
        if (visit < 3) response.end();
      });
    },
    { monotonicSeconds: () => seconds },
  );
  await received('heard.statuses.length === 3', () => heard.statuses.length === 3);
  t.same(
    asked.map(({ last }) => last),
    [undefined, 'id1', 'id2'],
  );
  t.same(heard.notes, []);
});

t.test('a service that is away is no failure', async (t) => {
  let attempts = 0;
  class CountingClient extends RestClient {
    override stream(...parameters: Parameters<RestClient['stream']>): ReturnType<RestClient['stream']> {
      attempts += 1;
      return super.stream(...parameters);
    }
  }
  let seconds = 0;
  const heard = new Heard();
  const stream = new EventStream({
    rest: new CountingClient({ base: 'http://127.0.0.1:1', token: null }),
    node: 'robot',
    hertz: 200,
    lastEventId: null,
    listener: heard,
    // A note is repeated after a minute.
    monotonicSeconds: () => {
      seconds += 100;
      return seconds;
    },
  });
  await stream.start();
  await until('three attempts', () => attempts >= 3);
  await stream.stop();
  t.match(heard.notes, [/broke off: .*ECONNREFUSED/]);
  t.equal(heard.notes.length, 1, 'noted once, not with each attempt');
});

t.test('a place that is not known any more is given up, and that is told', async (t) => {
  const { asked, heard, received } = await follow(
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
  await received('heard.statuses.length === 2', () => heard.statuses.length === 2);
  t.same(
    asked.map(({ last }) => last),
    ['old', undefined, 'id2', undefined],
  );
  t.match(heard.notes[0], /cannot resume after old, continuing with new events: .*the place is gone/);
});

t.test('a connection on which nothing comes any more is dead, before an answer and after', async (t) => {
  const { asked, heard, received } = await follow(
    t,
    (_request, response, visit) => {
      if (visit === 1) return;
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)));
    },
    { silenceSeconds: 0.3 },
  );
  await received('heard.statuses.length >= 3', () => heard.statuses.length >= 3);
  const lasts = asked.map(({ last }) => last);
  t.same(lasts.slice(0, 2), [undefined, undefined]);
  const ids = lasts.flatMap((last) => (last === undefined ? [] : [Number(last.slice(2))]));
  t.ok(ids.length > 0 && ids.every((id, index) => id >= (ids[index - 1] ?? 2)), `each goes on from the last event received: ${lasts}`);
  t.match(heard.notes[0], /broke off: .*no answer within 0.3 s/);
  t.ok(heard.notes.some((note) => note.includes('is back')));
});

t.test('a server that is not edge-health is noted, not read', async (t) => {
  const { heard, received } = await follow(t, (_request, response) => response.end('<html>'));
  await received('heard.notes.length > 0', () => heard.notes.length > 0);
  t.match(heard.notes, [/\/events answers with no type: is it edge-health\?/]);
});
