import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import { until } from '../../testkit/wait.ts';
import type { SourceListener } from './events.ts';
import { EventsSource } from './events.ts';

// These tests spend nearly all of their time waiting for the pause before the next attempt.
t.jobs = 6;

/** No server in these tests pauses for this long. */
const LONG_SECONDS = 600;

type Answer = (request: IncomingMessage, response: ServerResponse, visit: number) => void;

class Received implements SourceListener {
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

/** A stream from a server that responds to each visit as given. */
async function follow(
  t: Test,
  answer: Answer,
  options: { monotonicSeconds?: () => number; dataTimeoutSeconds?: number; token?: string } = {},
) {
  const requests: { path: string; last: string | undefined; token: string | undefined }[] = [];
  const server = createServer((request, response) => {
    requests.push({
      path: request.url ?? '',
      last: request.headers['last-event-id'] as string | undefined,
      token: request.headers.authorization,
    });
    answer(request, response, requests.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sink = new Received();
  const stream = new EventsSource({
    rest: new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: options.token ?? null }),
    node: 'robot',
    hertz: 1,
    listener: sink,
    monotonicSeconds: options.monotonicSeconds ?? (() => performance.now() / 1000),
    dataTimeoutSeconds: options.dataTimeoutSeconds ?? LONG_SECONDS,
  });
  t.teardown(async () => {
    await stream.stop();
    server.closeAllConnections();
    server.close();
  });
  await stream.start();
  const received = (what: string, holds: () => boolean): Promise<true> => until(what, holds, { describe: () => ({ requests, sink }) });
  return { requests, sink, stream, received };
}

t.test('delivers only the observed node, and notes events that are neither status nor alert', async (t) => {
  const { requests, sink, received } = await follow(
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
  await received('sink.alerts.length === 2', () => sink.alerts.length === 2);
  t.same(sink.statuses, ['events 01']);
  t.same(sink.alerts, ['events robot/cpu_percent/1 false', 'events robot/cpu_percent/1 true']);
  t.match(sink.notes, [/no health status: \{\}/, /no alert: x/]);
  t.equal(sink.notes.length, 2);
  t.same(requests, [{ path: '/events?events=health,alert&node=robot', last: undefined, token: 'Bearer secret' }]);
});

t.test('resumes after an end, a cut connection and a refusal', async (t) => {
  const { requests, sink, received } = await follow(t, (_request, response, visit) => {
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
  });
  await received('sink.statuses.length === 3', () => sink.statuses.length === 3);
  t.same(sink.statuses, ['events 01', 'events 03', 'events 04']);
  t.same(
    requests.map(({ last }) => last),
    [undefined, 'id1', 'id1', 'id3'],
  );
  t.match(sink.notes, [/was interrupted: the service ended it/, /is back after \d+\.\d s/, /was interrupted: /, /is back after/]);
});

t.test('a stream that the service ends because of its age is no interruption: it resumes after the last event', async (t) => {
  let seconds = 0;
  const { requests, sink, received } = await follow(
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
  await received('sink.statuses.length === 3', () => sink.statuses.length === 3);
  t.same(
    requests.map(({ last }) => last),
    [undefined, 'id1', 'id2'],
  );
  t.same(sink.notes, []);
});

t.test('a service that does not respond is not a failure', async (t) => {
  let attempts = 0;
  class CountingClient extends RestClient {
    override stream(...parameters: Parameters<RestClient['stream']>): ReturnType<RestClient['stream']> {
      attempts += 1;
      return super.stream(...parameters);
    }
  }
  let seconds = 0;
  const sink = new Received();
  const stream = new EventsSource({
    rest: new CountingClient({ base: 'http://127.0.0.1:1', token: null }),
    node: 'robot',
    hertz: 200,
    listener: sink,
    // A note is repeated after a minute.
    monotonicSeconds: () => {
      seconds += 100;
      return seconds;
    },
  });
  await stream.start();
  await until('three attempts', () => attempts >= 3);
  await stream.stop();
  t.match(sink.notes, [/was interrupted: .*ECONNREFUSED/]);
  t.equal(sink.notes.length, 1, 'noted once, not with each attempt');
});

t.test('a lost cursor is dropped, with a note', async (t) => {
  const { requests, sink, received } = await follow(t, (request, response, visit) => {
    if (request.headers['last-event-id'] !== undefined) {
      response.writeHead(visit === 2 ? 410 : 400, { 'Content-Type': 'application/problem+json' });
      response.end('{"code":"gone","detail":"the place is gone"}');
      return;
    }
    open(response);
    response.write(event(`id${visit}`, 'health', status(visit)), () => visit <= 3 && response.end());
  });
  await received('three statuses', () => sink.statuses.length === 3);
  t.same(
    requests.map(({ last }) => last),
    [undefined, 'id1', undefined, 'id3', undefined],
  );
  t.match(sink.notes[1], /cannot resume after id1, continuing with new events: .*the place is gone/);
});

t.test('closes a connection without data, before and after the response', async (t) => {
  const { requests, sink, received } = await follow(
    t,
    (_request, response, visit) => {
      if (visit === 1) return;
      open(response);
      response.write(event(`id${visit}`, 'health', status(visit)));
    },
    { dataTimeoutSeconds: 0.3 },
  );
  await received('sink.statuses.length >= 3', () => sink.statuses.length >= 3);
  const lasts = requests.map(({ last }) => last);
  t.same(lasts.slice(0, 2), [undefined, undefined]);
  const ids = lasts.flatMap((last) => (last === undefined ? [] : [Number(last.slice(2))]));
  t.ok(ids.length > 0 && ids.every((id, index) => id >= (ids[index - 1] ?? 2)), `each resumes after the last event received: ${lasts}`);
  t.match(sink.notes[0], /was interrupted: .*no response within 0.3 s/);
  t.ok(sink.notes.some((note) => note.includes('is back')));
});

t.test('notes a server that is not edge-health, and does not read its response', async (t) => {
  const { sink, received } = await follow(t, (_request, response) => response.end('<html>'));
  await received('sink.notes.length > 0', () => sink.notes.length > 0);
  t.match(sink.notes, [/\/events answers with no type: is it edge-health\?/]);
});
