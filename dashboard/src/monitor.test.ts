import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Api } from './api.ts';
import type { Tile } from './fleet.ts';
import { Monitor } from './monitor.ts';
import type { Alert, HealthStatus, NodeState } from './types.ts';

const NODE = 'health_monitor';
/** Both clocks stand still but while the test waits: how fast the machine is changes nothing of what they say. */
let virtualMs = 100_000;
const BEGUN_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
performance.now = () => virtualMs;
Date.now = () => BEGUN_MS + virtualMs;
/** By so much at each look, a millisecond or more of real time apart. */
const LOOK_MS = 10;
const FAST = { tickMs: 1, pollMs: 50, renderMs: 1 };
const WELL = {
  version: '0.1.0',
  uptime_seconds: 5,
  host: { hostname: 'pi', model: 'Pi' },
  open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
  publish: { configured_hertz: 1, measured_hertz: 1, missed: 0 },
  collectors: [],
  temperature_sensor: null,
  power: { undervoltage: null },
  storage: { state: 'ok', error: null, since: null, size_bytes: 0, max_bytes: 1 },
  shutdown: { state: 'none' },
};

const health = (timestampMs: number, more: Partial<HealthStatus> = {}): HealthStatus => ({
  cpu_percent: 20,
  memory_percent: 40,
  disk_percent: 30,
  temperature: null,
  status: 'OK',
  node_name: NODE,
  timestamp: new Date(timestampMs).toISOString(),
  ...more,
});
const alert = (id: string, resolved = false): Alert => ({
  alert_id: `${NODE}/cpu_percent/${id}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 85,
  threshold: 80,
  timestamp: new Date(Date.now()).toISOString(),
  resolved,
});

/** The API as far as the page uses it, on the loopback. */
class FakeService {
  /** Answers by path; a number is an error. */
  answers: Record<string, unknown> = {};
  token: string | null = null;
  history: HealthStatus[] = [];
  open: Alert[] = [];
  latest: HealthStatus | null = health(Date.now());
  others: NodeState[] = [];
  readonly asked: string[] = [];
  readonly lastEventIds: (string | undefined)[] = [];
  readonly streams = new Set<ServerResponse>();
  #server: Server | null = null;
  #port = 0;
  #number = 0;

  async start(): Promise<string> {
    this.#server = createServer((request, response) => this.#serve(request, response));
    await new Promise<void>((resolve) => this.#server?.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return `http://127.0.0.1:${this.#port}/`;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
    this.streams.clear();
  }

  send(event: string, data: unknown): void {
    this.#number += 1;
    for (const stream of this.streams) stream.write(`id: ${this.#number}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  measure(timestampMs = Date.now(), more: Partial<HealthStatus> = {}): void {
    this.latest = health(timestampMs, more);
    this.send('health', this.latest);
  }

  #status(): unknown {
    const age = this.latest ? (Date.now() - Date.parse(this.latest.timestamp)) / 1000 : null;
    const node = {
      node_name: NODE,
      local: true,
      status: 'OK',
      timestamp: this.latest?.timestamp ?? null,
      age_seconds: age,
      period_seconds: 1,
      left: null,
    };
    return { ...WELL, nodes: [node, ...this.others], open_alerts: { ...WELL.open_alerts, WARNING: this.open.length } };
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    this.asked.push(request.url ?? '');
    const isAllowed = this.token === null || request.headers.authorization === `Bearer ${this.token}`;
    if (isAllowed && path === '/events') {
      this.lastEventIds.push(request.headers['last-event-id'] as string | undefined);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 2000\n\n');
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
      return;
    }
    const [status, body] = isAllowed ? this.#answer(path, query) : [401, { code: 'unauthorized' }];
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }

  #other(query: string): [number, unknown] {
    const name = new URLSearchParams(query).get('node');
    const node = this.others.find(({ node_name }) => node_name === name);
    if (!node?.timestamp) return [404, { code: 'unknown_node' }];
    return [200, health(Date.parse(node.timestamp), { node_name: node.node_name, cpu_percent: 77 })];
  }

  #answer(path: string, query: string): [number, unknown] {
    const answer = this.answers[path];
    if (typeof answer === 'number') return [answer, { code: 'storage_unavailable' }];
    if (answer !== undefined) return [200, answer];
    switch (path) {
      case '/status':
        return [200, this.#status()];
      case '/health':
        if (query !== '') return this.#other(query);
        return this.latest ? [200, this.latest] : [503, { code: 'no_sample_yet' }];
      case '/health/history': {
        const of = new URLSearchParams(query).get('node') ?? NODE;
        const data = this.history.filter(({ node_name }) => node_name === of);
        return [200, { data, count: data.length }];
      }
      case '/alerts':
        return [200, { data: query.includes('resolved=true') ? [] : this.open, count: 0 }];
      default:
        return [404, { code: 'not_found' }];
    }
  }
}

/** A node with its clock so far off, and its age. */
const other = (name: string, offsetMs = 0, age = 0): NodeState => ({
  node_name: name,
  local: false,
  status: 'OK',
  timestamp: new Date(Date.now() + offsetMs - age * 1000).toISOString(),
  age_seconds: age,
  period_seconds: 1,
  left: null,
});

/** Lets time pass until the condition holds. */
async function until(condition: () => boolean, what: string): Promise<void> {
  for (let looks = 0; looks < 6000; looks += 1) {
    if (condition()) return;
    await sleep(1);
    virtualMs += LOOK_MS;
  }
  throw new Error(`waited in vain until ${what}`);
}

interface Scene {
  readonly service: FakeService;
  readonly monitor: Monitor;
  readonly draws: () => number;
  readonly tokens: { value: string | null };
}

async function scene(t: Test, prepare: (service: FakeService) => void = () => {}, timing = FAST): Promise<Scene> {
  const service = new FakeService();
  prepare(service);
  const base = await service.start();
  const tokens: { value: string | null } = { value: null };
  const api = new Api(base, {
    get: () => tokens.value,
    set: (token) => {
      tokens.value = token;
    },
  });
  let draws = 0;
  const monitor = new Monitor(
    api,
    () => {
      draws += 1;
    },
    timing,
  );
  t.teardown(async () => {
    monitor.stop();
    await service.stop();
  });
  monitor.start();
  return { service, monitor, draws: () => draws, tokens };
}
const isLive =
  ({ monitor }: Scene) =>
  (): boolean =>
    monitor.state.connection.phase === 'live';

t.test('it loads everything and follows the stream', async (t) => {
  const now = Date.now();
  const s = await scene(t, (service) => {
    service.history = [health(now - 2000, { cpu_percent: 1 }), health(now - 1000, { cpu_percent: 2 })];
    service.open = [alert('a')];
  });
  await until(isLive(s), 'it is live');
  t.equal(s.monitor.state.node, NODE);
  t.equal(s.monitor.state.book.open.length, 1);
  t.ok(s.service.asked.includes('/alerts?resolved=false'));
  t.ok(s.service.asked.includes('/health/history?hours=0.083333'));
  s.service.measure(now, { cpu_percent: 3 });
  await until(() => s.monitor.state.health?.cpu_percent === 3, 'the sample came');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [1, 2, 3]);
  t.same(s.monitor.state.series.columns(3000).metrics[3], [null, null, null], 'unavailable is not 0');
  s.service.send('alert', { ...alert('a'), resolved: true, timestamp: new Date(now + 10_000).toISOString() });
  s.service.open = [];
  await until(() => s.monitor.state.book.open.length === 0, 'the alert is resolved');
  t.equal(s.monitor.state.book.resolved.length, 1);
});

t.test('when the service goes away it says so, and heals by itself when it is back, with the gap filled', async (t) => {
  const now = Date.now();
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  s.service.measure(now - 10_000, { cpu_percent: 1 });
  await until(() => s.monitor.state.series.length === 1, 'the sample came');
  await s.service.stop();
  await until(() => s.monitor.state.connection.phase === 'waiting', 'it noticed');
  t.equal(s.monitor.state.health?.cpu_percent, 1, 'what was known last is kept');
  s.service.history = Array.from({ length: 10 }, (_, i) => health(now - 10_000 + i * 1000, { cpu_percent: i + 1 }));
  s.service.latest = health(Date.now());
  await s.service.start();
  await until(isLive(s), 'it is live again');
  t.equal(s.service.lastEventIds.at(-1), '1', 'it resumes after the last event it saw');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

t.test('a stream that the service ends when it is old goes on from the last event, and nothing is loaded again', async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  for (let second = 0; second < 65; second += 1) {
    virtualMs += 1000;
    s.service.measure(Date.now(), { cpu_percent: second });
    await until(() => s.monitor.state.health?.cpu_percent === second, 'the sample came');
  }
  const loads = (): number => s.service.asked.filter((url) => url.startsWith('/health/history')).length;
  const before = loads();
  const phases = new Set<string>();
  for (const stream of s.service.streams) stream.end('retry: 100\nid: last\n\n');
  await until(() => {
    phases.add(s.monitor.state.connection.phase);
    return s.service.lastEventIds.length === 2 && s.service.streams.size === 1;
  }, 'the next stream is open');
  t.same([...phases], ['live'], 'nobody sees it');
  t.equal(s.service.lastEventIds.at(-1), 'last');
  s.service.measure(Date.now(), { cpu_percent: 99 });
  await until(() => s.monitor.state.health?.cpu_percent === 99, 'samples come');
  t.equal(loads(), before);
});

t.test('a service that goes on answering without measuring falls silent', async (t) => {
  const s = await scene(t, (service) => {
    service.answers['/status'] = {
      ...WELL,
      publish: { configured_hertz: 1000, measured_hertz: null, missed: 0 },
      nodes: [{ node_name: NODE, local: true, status: 'OK', timestamp: new Date(Date.now()).toISOString(), age_seconds: 0 }],
    };
  });
  await until(isLive(s), 'it is live');
  await until(() => s.monitor.state.connection.phase === 'stale', 'it is stale');
  await until(() => s.monitor.state.connection.answers, 'it was asked and answered');
  s.service.measure();
  await until(isLive(s), 'it is live again');
});

t.test('without a token it is locked; with a wrong one too; with the right one it is live, and sends it with everything', async (t) => {
  const s = await scene(t, (service) => {
    service.token = 'sesame';
  });
  const isLocked = (): boolean => s.monitor.state.connection.phase === 'locked';
  await until(isLocked, 'it is locked');
  s.tokens.value = 'wrong';
  s.monitor.unlock();
  t.notOk(isLocked());
  await until(isLocked, 'it is locked again');
  s.tokens.value = 'sesame';
  s.monitor.unlock();
  await until(isLive(s), 'it is live');
  s.service.token = 'changed';
  await until(isLocked, 'the next look at /status is refused');
});

t.test('a store that cannot be read costs the history and the alerts, not the rest; both come when it can be read again', async (t) => {
  const s = await scene(t, (service) => {
    service.answers['/health/history'] = 503;
    service.answers['/alerts'] = 503;
    service.history = [health(Date.now() - 1000)];
  });
  await until(isLive(s), 'it is live');
  t.equal(s.monitor.state.history, 'failed');
  t.equal(s.monitor.state.alerts, 'failed', 'it does not claim that there are no alerts');
  s.service.answers = {};
  await until(() => s.monitor.state.history === 'ready' && s.monitor.state.alerts === 'ready', 'both are there');
  t.equal(s.monitor.state.series.length, 1);
});

t.test('before the first measurement it is stale, not broken', async (t) => {
  const s = await scene(t, (service) => {
    service.latest = null;
  });
  await until(() => s.monitor.state.connection.phase === 'stale', 'it is stale');
  t.equal(s.monitor.state.health, null);
  s.service.measure();
  await until(isLive(s), 'it is live');
});

t.test('when the service counts other open alerts than the page, the page asks again', async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  s.service.open = [alert('missed')];
  await until(() => s.monitor.state.book.open.length === 1, 'the alert is there');
  t.pass();
});

t.test("another node's measurements are not this machine's", async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  s.service.send('health', health(Date.now(), { node_name: 'robot', cpu_percent: 99 }));
  s.service.measure(Date.now(), { cpu_percent: 7 });
  await until(() => s.monitor.state.health?.cpu_percent === 7, 'ours came');
  t.equal(s.monitor.state.series.length, 1);
});

t.test('a safe shutdown is shown as soon as the stream tells of it, whether /status can still be asked or not', async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  s.service.answers['/status'] = 500;
  const told = {
    action: 'dry-run',
    reason: 'MANUAL',
    requested_by: 'Zoë',
    message: 'no',
    seconds_left: 9,
    timestamp: '2026-03-04T05:06:07Z',
  };
  s.service.send('shutdown', { ...told, state: 'in_progress' });
  await until(() => s.monitor.state.status?.shutdown.state === 'in_progress', 'it is told');
  t.match(s.monitor.state.status?.shutdown, { requested_by: 'Zoë', seconds_left: 9, ended: null });
  s.service.send('shutdown', { ...told, state: 'aborted' });
  await until(() => s.monitor.state.status?.shutdown.state === 'aborted', 'its end is told');
  t.match(s.monitor.state.status?.shutdown, { ended: told.timestamp });
  s.service.answers = {};
  await until(() => s.monitor.state.status?.shutdown.state === 'none', '/status has the last word');
});

t.test('an event that is no JSON is passed over', async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  for (const stream of s.service.streams) stream.write('event: health\ndata: {"cpu\n\n');
  s.service.measure(Date.now(), { cpu_percent: 7 });
  await until(() => s.monitor.state.health?.cpu_percent === 7, 'the next came');
  t.equal(s.monitor.state.connection.failures, 0);
});

t.test('another window is asked for in steps, and shown from then on', async (t) => {
  const s = await scene(t);
  await until(isLive(s), 'it is live');
  s.monitor.show('1h');
  s.monitor.show('24h');
  await until(
    () => s.monitor.state.history === 'ready' && s.service.asked.includes('/health/history?hours=24.000000&step=5m'),
    'it is there',
  );
  t.equal(s.monitor.state.series.windowMs, 86_400_000);
  t.ok(isLive(s)(), 'a request that was given up is no failure');
});

t.test('a thousand samples within the pause between two draws are not drawn one by one', async (t) => {
  const s = await scene(t, () => {}, { ...FAST, renderMs: 600_000 });
  await until(isLive(s), 'it is live');
  const now = Date.now();
  for (let i = 0; i < 1000; i += 1) s.service.measure(now + i, { cpu_percent: i / 10 });
  await until(() => s.monitor.state.health?.cpu_percent === 99.9, 'the last came');
  t.equal(s.draws(), 1, 'but the very first change');
  t.ok(s.monitor.state.series.length <= 3);
});

t.test('another node is chosen: its values, its history by its own clock; and back again', async (t) => {
  const behindMs = -2 * 3_600_000;
  const now = Date.now();
  const s = await scene(t, (service) => {
    service.others = [other('arm', behindMs), other('/fleet/cart', 0, 40)];
    service.history = [health(now - 1000), health(now + behindMs - 1000, { node_name: 'arm', cpu_percent: 5 })];
  });
  await until(isLive(s), 'it is live');
  const tile = (name: string): Tile | undefined => {
    const { fleet, status, statusAtMs } = s.monitor.state;
    return fleet.tiles(status?.nodes ?? [], statusAtMs, performance.now()).find(({ node }) => node === name);
  };
  await until(() => tile('/fleet/cart')?.readings?.cpu_percent === 77, 'what is silent was asked for');
  t.equal(tile('/fleet/cart')?.isStale, true);
  s.monitor.choose('arm');
  t.equal(s.monitor.state.node, 'arm');
  await until(() => s.monitor.state.history === 'ready', 'its history came');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [5]);
  const asked = s.service.asked.findLast((url) => url.startsWith('/health/history')) ?? '';
  const query = new URLSearchParams(asked.split('?')[1]);
  t.equal(query.get('node'), 'arm');
  t.ok(Math.abs(Date.parse(query.get('to') ?? '') - (Date.now() + behindMs)) < 60_000, 'up to its own now');
  t.ok(Math.abs(s.monitor.clocks.shownNowMs - (Date.now() + behindMs)) < 60_000);
  s.service.send('health', health(Date.now() + behindMs, { node_name: 'arm', cpu_percent: 6 }));
  await until(() => s.monitor.state.health?.cpu_percent === 6, 'it is followed');
  s.service.measure(Date.now(), { cpu_percent: 50 });
  s.service.send('health', health(Date.now() + behindMs - 5000, { node_name: 'arm', cpu_percent: 99 }));
  await until(() => tile(NODE)?.readings?.cpu_percent === 50, 'this machine is heard as well');
  t.equal(s.monitor.state.health?.cpu_percent, 6, 'neither another node nor what was overtaken is shown');
  t.equal(tile('arm')?.readings?.cpu_percent, 6);
  s.monitor.choose(NODE);
  t.equal(s.monitor.state.health?.cpu_percent, 50);
  await until(() => s.service.asked.findLast((url) => url.startsWith('/health/history')) === '/health/history?hours=0.083333', 'as before');
  t.ok(isLive(s)(), 'the connection did not mind');
});

t.test('a node of the address that nobody knows is shown without data', async (t) => {
  const service = new FakeService();
  const base = await service.start();
  const monitor = new Monitor(new Api(base, { get: () => null, set: () => {} }), () => {}, FAST, 'nobody');
  t.teardown(async () => {
    monitor.stop();
    await service.stop();
  });
  monitor.start();
  await until(() => monitor.state.connection.phase === 'live', 'it is live');
  t.match(monitor.state, { node: 'nobody', local: NODE, health: null });
});
