import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../../testkit/effort.ts';
import {
  type Connection,
  type ConnectionEvent,
  initialConnection,
  type Phase,
  retryDelayMs,
  staleAfterMs,
  stepConnection,
} from './connection.ts';

fc.configureGlobal({ seed: SEED });

const STALE = staleAfterMs(1);
const from = (connection: Connection, ...events: [ConnectionEvent | ConnectionEvent['kind'], number][]): Connection =>
  events.reduce((at, [event, ms]) => stepConnection(at, typeof event === 'string' ? full(event) : event, ms, STALE), connection);

function full(kind: ConnectionEvent['kind']): ConnectionEvent {
  switch (kind) {
    case 'loaded':
      return { kind, ageMs: 500 };
    case 'failed':
      return { kind, reason: null };
    default:
      return { kind };
  }
}

const start = initialConnection(0);
const live = from(start, ['opened', 10], ['loaded', 50], ['measured', 100]);

t.test('the connection opens, loads and becomes live', async (t) => {
  t.equal(start.phase, 'connecting');
  t.equal(from(start, ['opened', 10]).phase, 'loading');
  t.equal(from(start, ['opened', 10], ['loaded', 50]).phase, 'live');
  t.equal(live.measuredMs, 100);
});

t.test('after loading an old measurement or none it is stale until one arrives', async (t) => {
  const old = from(start, ['opened', 10], [{ kind: 'loaded', ageMs: 60_000 }, 50]);
  t.equal(old.phase, 'stale');
  const none = from(start, ['opened', 10], [{ kind: 'loaded', ageMs: null }, 50]);
  t.equal(none.phase, 'stale');
  t.equal(none.measuredMs, null);
  t.equal(from(none, ['measured', 60]).phase, 'live');
});

t.test('a measurement received while loading counts', async (t) => {
  t.equal(from(start, ['opened', 10], ['measured', 20], [{ kind: 'loaded', ageMs: null }, 50]).phase, 'live');
});

t.test('it becomes stale after three periods without a measurement, and the stream stays open', async (t) => {
  t.equal(from(live, ['tick', 3000]).phase, 'live');
  const stale = from(live, ['received', 3000], ['tick', 3700]);
  t.equal(stale.phase, 'stale');
  t.equal(from(stale, ['measured', 4000]).phase, 'live');
});

t.test('a stale service is responding once it has answered a request', async (t) => {
  const stale = from(live, ['tick', 3700]);
  t.notOk(stale.isResponding);
  t.ok(from(stale, ['answered', 3800]).isResponding);
  t.ok(from(start, ['opened', 10], [{ kind: 'loaded', ageMs: null }, 50]).isResponding);
});

t.test('the connection is closed after 20 seconds without a byte', async (t) => {
  const stale = from(live, ['received', 15_000], ['tick', 15_100]);
  t.equal(from(stale, ['tick', 35_000]).phase, 'stale');
  const gone = from(stale, ['tick', 35_001]);
  t.equal(gone.phase, 'waiting');
  t.equal(gone.retryMs, 36_001);
});

t.test('a measurement is stale after three periods, but after at least two seconds', async (t) => {
  t.equal(staleAfterMs(1000), 2000);
  t.equal(staleAfterMs(1), 3500);
  t.equal(staleAfterMs(0.1), 30_500);
});

t.test('the retry delay grows from 1 to 15 seconds and is reset by a measurement', async (t) => {
  t.same([1, 2, 3, 4, 5, 6, 100].map(retryDelayMs), [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  let connection = live;
  let now = 1000;
  const delays: number[] = [];
  for (let i = 0; i < 6; i += 1) {
    connection = from(connection, ['failed', now]);
    delays.push(connection.retryMs - now);
    t.equal(from(connection, ['tick', connection.retryMs - 1]).phase, 'waiting');
    now = connection.retryMs;
    connection = from(connection, ['tick', now]);
    t.equal(connection.phase, 'connecting');
  }
  t.same(delays, [1000, 2000, 4000, 8000, 15_000, 15_000]);
  const back = from(connection, ['opened', now], ['loaded', now], ['measured', now], ['failed', now]);
  t.equal(back.retryMs - now, 1000);
});

t.test('the retry delay also grows if the service accepts connections and closes them immediately', async (t) => {
  const again = from(start, ['failed', 0], ['tick', 1000], ['opened', 1000], ['failed', 1001]);
  t.equal(again.retryMs, 3001);
});

t.test('opening and loading time out', async (t) => {
  t.equal(from(start, ['tick', 10_000]).phase, 'connecting');
  t.equal(from(start, ['tick', 10_001]).phase, 'waiting');
  t.equal(from(start, ['opened', 100], ['received', 15_000], ['tick', 15_101]).phase, 'waiting');
});

t.test('after a refusal it stays locked until a token is entered, then connects immediately', async (t) => {
  for (const connection of [start, from(start, ['opened', 10]), live, from(live, ['tick', 5000])]) {
    const locked = from(connection, ['refused', 6000]);
    t.equal(locked.phase, 'locked');
    t.equal(from(locked, ['tick', 1e9], ['failed', 1e9], ['reconnect', 1e9]).phase, 'locked');
    t.equal(from(locked, ['token', 7000]).phase, 'connecting');
  }
});

t.test('reconnect ends the retry delay and changes no other phase', async (t) => {
  const waiting = from(live, ['failed', 1000]);
  t.equal(from(waiting, ['reconnect', 1100]).phase, 'connecting');
  t.equal(from(live, ['reconnect', 1100]), live);
});

t.test('late events of an aborted attempt change nothing', async (t) => {
  const waiting = from(live, ['failed', 1000]);
  for (const kind of ['opened', 'loaded', 'received', 'measured', 'answered', 'failed', 'refused'] as const)
    t.equal(from(waiting, [kind, 1001]), waiting);
});

t.test('the reason for a failure is kept until the next successful load', async (t) => {
  const waiting = from(start, [{ kind: 'failed', reason: 'Too many.' }, 0]);
  const connecting = from(waiting, ['tick', 1000]);
  t.equal(connecting.reason, 'Too many.');
  t.equal(from(connecting, ['opened', 1010], ['loaded', 1020]).reason, null);
});

t.test('from every phase except locked, the connection to a healthy service is live again within 30 seconds', async (t) => {
  const kinds = ['opened', 'loaded', 'received', 'measured', 'failed', 'reconnect', 'tick'] as const;
  const seen = new Set<Phase>();
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...kinds), fc.nat(8000)), { maxLength: 60, size: 'max' }), (steps) => {
      let now = 0;
      let connection = start;
      for (const [kind, later] of steps) {
        now += later;
        connection = from(connection, [kind, now]);
        seen.add(connection.phase);
      }
      for (const until = now + 30_000; now < until; now += 250) {
        connection = from(connection, ['tick', now]);
        if (connection.phase === 'connecting') connection = from(connection, ['opened', now]);
        else if (connection.phase === 'loading') connection = from(connection, ['loaded', now]);
        else if (connection.phase !== 'waiting') connection = from(connection, ['measured', now]);
      }
      return connection.phase === 'live';
    }),
  );
  t.ok(seen.size >= 5, `phases reached: ${[...seen]}`);
});
