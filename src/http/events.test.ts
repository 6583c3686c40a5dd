import { EventEmitter, once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader, Position } from '../core/ports.ts';
import { Semaphore, type StoreAccess } from './context.ts';
import { EventHub, parseId, type StreamFilter } from './events.ts';
import type { Problem } from './problem.ts';
import { type Client, type Clients, clientByAddress } from './shares.ts';

const STATUS = { node_name: 'a' } as HealthStatus;
const LINE = JSON.stringify({ node_name: 'a', padding: 'x'.repeat(4000) });
const history = {} as HistoryReader; // No test here resumes a stream from the store.
const store = new Semaphore(1);
const clients: Clients = { clientOf: clientByAddress, lookUpUsers: async () => undefined };

/** A hub whose streams are ended after a moment, and a client of it. */
async function shortLived(
  t: Test,
): Promise<{ hub: EventHub; read: (kinds: StreamFilter['kinds'], lastId: string | null) => Promise<string> }> {
  const hub = new EventHub({ history, clients, max: 10, heartbeatSeconds: 0.02, lifeSeconds: 0.1 });
  const server = createServer((request, response) => {
    const last = request.headers['last-event-id'] as string | undefined;
    const kinds = request.url === '/alert' ? (['alert'] as const) : (['health'] as const);
    void hub.open({ request, response, store }, { kinds, node: null }, last ?? null);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    hub.stop();
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const read = (kinds: StreamFilter['kinds'], lastId: string | null): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = lastId === null ? {} : { 'Last-Event-ID': lastId };
      const asked = get(`${url}/${kinds[0]}`, { headers, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.once('end', () => resolve(text));
        response.once('error', reject);
      });
      asked.once('error', reject);
    });
  return { hub, read };
}

const lastIdOf = (text: string): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';

t.test('a stream is ended after its lifetime, and its client resumes it without losing or repeating an event', async (t) => {
  const { hub, read } = await shortLived(t);
  let sent = 0;
  const publishing = setInterval(() => {
    for (let i = 0; i < 3; i += 1) hub.publishHealth(STATUS, JSON.stringify({ n: sent++ }), null);
  }, 1);
  t.teardown(() => clearInterval(publishing));
  const received: number[] = [];
  let last: string | null = null;
  // At least five, and as many as a slow machine needs.
  for (let stream = 0; stream < 5 || received.length <= 100; stream += 1) {
    const text: string = await read(['health'], last);
    t.match(text, stream === 0 ? /^retry: 2000\nid: _\w+\n\n/ : /^retry: 2000\n\n/);
    t.match(text, /\n\nretry: 100\nid: [^\n]+\n\n$/, 'with the id to resume from and a short retry');
    last = lastIdOf(text);
    received.push(...[...text.matchAll(/"n":(\d+)/g)].map(([, n]) => Number(n)));
  }
  const first = received[0] as number;
  t.same(
    received,
    received.map((_, i) => first + i),
  );
});

t.test('a client that has received no event yet misses none', async (t) => {
  const { hub, read } = await shortLived(t);
  const before = lastIdOf(await read(['alert'], null));
  const alert = (id: string): Alert => ({ alert_id: `a/cpu_percent/${id}` }) as Alert;
  hub.publishAlert(alert('first'), null);
  const first = await read(['alert'], before);
  t.match(first, /"a\/cpu_percent\/first"/, 'the very first event of all');
  hub.publishHealth(STATUS, '{}', null);
  const after = lastIdOf(await read(['alert'], lastIdOf(first)));
  t.not(after, lastIdOf(first), 'events of other kinds advance its id');
  hub.publishAlert(alert('second'), null);
  const second = await read(['alert'], after);
  t.match(second, /"a\/cpu_percent\/second"/);
  t.notMatch(second, /first/);
});

t.test('a client whose connection breaks before its first event misses none', async (t) => {
  const hub = new EventHub({ history, clients, max: 1 });
  t.teardown(() => hub.stop());
  hub.publishHealth(STATUS, '{}', null);
  const opened = fakeAccess('127.0.0.1');
  await hub.open(opened, { kinds: ['alert'], node: null }, null);
  opened.response.emit('close');
  hub.publishAlert({ alert_id: 'a/cpu_percent/1' } as Alert, null);
  const resumed = fakeAccess('127.0.0.1');
  await hub.open(resumed, { kinds: ['alert'], node: null }, lastIdOf(opened.written()));
  t.match(resumed.written(), /a\/cpu_percent\/1/);
});

t.test('the id of an event holds the cursors of the last health status and the last alert that were recorded', async (t) => {
  const hub = new EventHub({ history, clients, max: 1 });
  t.teardown(() => hub.stop());
  const access = fakeAccess('127.0.0.1');
  await hub.open(access, { kinds: ['health', 'alert'], node: null }, null);
  const alert = { alert_id: 'a/cpu_percent/1' } as Alert;
  hub.publishHealth(STATUS, '{}', null);
  hub.publishHealth(STATUS, '{}', { segment: 60, sequence: 1 });
  hub.publishAlert(alert, { segment: 60, sequence: 2 });
  hub.publishHealth(STATUS, '{}', null);
  hub.publishHealth(STATUS, '{}', { segment: 70, sequence: 1 });
  hub.publishAlert(alert, { segment: 60, sequence: 3 });
  const positions = [...access.written().matchAll(/^id: (.*)$/gm)].map(([, id]) => parseId(id as string));
  const at = (health: [number, number], alert: [number, number]): Position => ({
    health: { segment: health[0], sequence: health[1] },
    alert: { segment: alert[0], sequence: alert[1] },
  });
  t.same(positions.slice(1), [
    null,
    at([60, 1], [60, 0]),
    at([60, 1], [60, 2]),
    at([60, 1], [60, 2]),
    at([70, 1], [60, 2]),
    at([70, 1], [60, 3]),
  ]);
});

/** A request from an address, without a network. */
function fakeAccess(
  remoteAddress: string,
  headers: Readonly<Record<string, string>> = {},
): StoreAccess & { readonly response: { writableLength: number }; readonly written: () => string } {
  let written = '';
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    socket: null,
    writeHead: () => undefined,
    end: () => undefined,
    write: (text: string) => {
      response.writableLength += text.length;
      written += text;
    },
    destroy: () => {
      response.writableLength = 0;
    },
  });
  const request = { headers, socket: { remoteAddress, localAddress: '192.0.2.1' } };
  return { request, response, store, written: () => written } as unknown as ReturnType<typeof fakeAccess>;
}

t.test('the unread bytes of thousands of streams are bounded in total', async (t) => {
  const hub = new EventHub({ history, clients, max: 5000 });
  t.teardown(() => hub.stop());
  const all = Array.from({ length: 2000 }, () => fakeAccess('127.0.0.1'));
  for (const access of all) void hub.open(access, { kinds: ['health'], node: null }, null);
  let most = 0;
  while (hub.count > 0) {
    hub.publishHealth(STATUS, LINE, null);
    most = Math.max(
      most,
      all.reduce((sum, { response }) => sum + response.writableLength, 0),
    );
  }
  t.ok(most > 1e6 && most < 48 * 1024 * 1024, `at most ${(most / 1e6).toFixed(0)} MB wait`);
  t.equal(hub.dropped, 2000);
});

/** Opens streams from an address; `of` returns what became of several. */
function opener(hub: EventHub) {
  const open = (address: string, headers: Readonly<Record<string, string>> = {}): Promise<string> =>
    hub.open(fakeAccess(address, headers), { kinds: ['health'], node: null }, null).then(
      () => 'open',
      (problem: Problem) => `${problem.code}: ${problem.message}`,
    );
  const of = async (count: number, address: string): Promise<Set<string>> =>
    new Set(await Promise.all(Array.from({ length: count }, () => open(address))));
  return { of, open };
}

t.test('one client has at most half of the streams; this host has a reserve, but a proxy on it does not', async (t) => {
  const hub = new EventHub({ history, clients, max: 8 });
  t.teardown(() => hub.stop());
  const { of, open } = opener(hub);
  t.same(await of(4, '198.51.100.1'), new Set(['open']));
  t.match(await open('::ffff:198.51.100.1'), /^too_many_event_streams: 198\.51\.100\.1 has 4 event streams/);
  t.same(await of(4, '2001:db8::1'), new Set(['open']));
  t.match(await open('198.51.100.2'), /^too_many_event_streams: all 8 event streams are in use/);
  t.match(await open('127.0.0.1', { 'x-forwarded-for': '198.51.100.3' }), /all 8/);
  t.same(await of(8, '127.0.0.1'), new Set(['open']));
  t.match(await open('127.0.0.1'), /all 8/);
  t.equal(hub.count, 16);
});

t.test('users of this host are looked up once they make a difference; none can take what the others need', async (t) => {
  const users = new Map<object, Client>();
  let lookups = 0;
  const hub = new EventHub({
    history,
    max: 16,
    clients: {
      clientOf: (socket) => users.get(socket) ?? clientByAddress(socket),
      lookUpUsers: async () => {
        lookups += 1;
        for (const [socket, user] of waiting) users.set(socket, user);
      },
    },
  });
  t.teardown(() => hub.stop());
  const waiting: [object, Client][] = [];
  const open = (user: Client): Promise<string> => {
    const access = fakeAccess('127.0.0.1');
    waiting.push([access.request.socket, user]);
    return hub.open(access, { kinds: ['health'], node: null }, null).then(
      () => 'open',
      ({ message }: Problem) => message,
    );
  };
  for (let n = 0; n < 16; n += 1) t.equal(await open('user mallory'), 'open');
  t.equal(lookups, 0, 'below the share of one user, nothing is looked up');
  t.match(await open('user mallory'), /^user mallory has 16 event streams, the maximum for one client/);
  const flood = await Promise.all(Array.from({ length: 20 }, () => open('user mallory')));
  t.notOk(flood.includes('open'), 'nor several at once');
  const { of } = opener(hub);
  t.same(await of(8, '198.51.100.1'), new Set(['open']), 'remote clients take what remains');
  for (const user of ['user root', 'user edge-health', 'user ann', null]) {
    t.equal(await open(user), 'open', `${user} has two streams all the same`);
    t.equal(await open(user), 'open');
    t.match(await open(user), /^all 16 event streams are in use/);
  }
});
