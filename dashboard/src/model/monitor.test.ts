import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Alert, HealthStatus, NodeState } from '../types.ts';
import { Api } from './api.ts';
import type { Tile } from './fleet.ts';
import { Monitor } from './monitor.ts';

const NODE = 'health_monitor';
/** Both clocks advance only while a test waits, so that the speed of the machine does not matter. */
let virtualMs = 100_000;
const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
performance.now = () => virtualMs;
Date.now = () => START_MS + virtualMs;
/** The clocks advance by this much each time a condition is checked. */
const STEP_MS = 10;
const FAST = { tickMs: 1, pollMs: 50, renderMs: 1, collectMs: 0 };
const HEALTHY_STATUS = {
  version: '0.1.0',
  uptime_seconds: 5,
  host: { hostname: 'pi', model: 'Pi' },
  open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
  publish: { configured_hertz: 1, measured_hertz: 1, missed: 0 },
  started: '2026-03-04T05:00:00.000Z',
  clock_events: [],
  thresholds: { cpu_percent: {}, memory_percent: {}, disk_percent: {}, temperature: {} },
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

/** The part of the API that the page uses, on the loopback interface. */
class FakeService {
  /** Responses by path; a number is an error status. */
  answers: Record<string, unknown> = {};
  token: string | null = null;
  /** Whether missed events can be read; otherwise the service ends a stream that should resume. */
  isResumable = true;
  history: HealthStatus[] = [];
  open: Alert[] = [];
  latest: HealthStatus | null = health(Date.now());
  remoteNodes: NodeState[] = [];
  readonly requests: string[] = [];
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
      clock_ahead_seconds: null,
      conflict_addresses: [],
      left: null,
    };
    return {
      ...HEALTHY_STATUS,
      nodes: [node, ...this.remoteNodes],
      open_alerts: { ...HEALTHY_STATUS.open_alerts, WARNING: this.open.length },
    };
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    this.requests.push(request.url ?? '');
    const isAllowed = this.token === null || request.headers.authorization === `Bearer ${this.token}`;
    if (isAllowed && path === '/events') {
      this.lastEventIds.push(request.headers['last-event-id'] as string | undefined);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 2000\n\n');
      if (!this.isResumable && this.lastEventIds.at(-1) !== undefined) return void response.end();
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
      return;
    }
    const [status, body] = isAllowed ? this.#answer(path, query) : [401, { code: 'unauthorized' }];
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }

  #remoteHealth(query: string): [number, unknown] {
    const name = new URLSearchParams(query).get('node');
    const node = this.remoteNodes.find(({ node_name }) => node_name === name);
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
        if (query !== '') return this.#remoteHealth(query);
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

/** `offsetMs`: the node's clock minus this machine's. `age`: seconds since its last status. */
const remoteNode = (name: string, offsetMs = 0, age = 0): NodeState => ({
  node_name: name,
  local: false,
  status: 'OK',
  timestamp: new Date(Date.now() + offsetMs - age * 1000).toISOString(),
  age_seconds: age,
  period_seconds: 1,
  clock_ahead_seconds: null,
  conflict_addresses: [],
  left: null,
});

/** Advances the clocks until the condition holds. */
async function until(condition: () => boolean, what: string): Promise<void> {
  for (let steps = 0; steps < 6000; steps += 1) {
    if (condition()) return;
    await sleep(1);
    virtualMs += STEP_MS;
  }
  throw new Error(`timed out waiting until ${what}`);
}

interface Fixture {
  readonly service: FakeService;
  readonly monitor: Monitor;
  readonly draws: () => number;
  readonly tokens: { value: string | null };
}

async function startMonitor(t: Test, prepare: (service: FakeService) => void = () => {}, timing = FAST): Promise<Fixture> {
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
  ({ monitor }: Fixture) =>
  (): boolean =>
    monitor.state.connection.phase === 'live';

t.test('the monitor loads all data and follows the stream', async (t) => {
  const now = Date.now();
  const s = await startMonitor(t, (service) => {
    service.history = [health(now - 2000, { cpu_percent: 1 }), health(now - 1000, { cpu_percent: 2 })];
    service.open = [alert('a')];
  });
  await until(isLive(s), 'it is live');
  t.equal(s.monitor.state.node, NODE);
  t.equal(s.monitor.state.book.open.length, 1);
  t.ok(s.service.requests.includes('/alerts?resolved=false'));
  t.ok(s.service.requests.includes('/health/history?hours=0.083333'));
  s.service.measure(now, { cpu_percent: 3 });
  await until(() => s.monitor.state.health?.cpu_percent === 3, 'the sample is shown');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [1, 2, 3]);
  t.same(s.monitor.state.series.columns(3000).metrics[3], [null, null, null], 'unavailable is not 0');
  s.service.send('alert', { ...alert('a'), resolved: true, timestamp: new Date(now + 10_000).toISOString() });
  s.service.open = [];
  await until(() => s.monitor.state.book.open.length === 0, 'the alert is resolved');
  t.equal(s.monitor.state.book.resolved.length, 1);
});

t.test('once the page is live, the status of the machine is known without waiting for its next sample', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  t.ok(s.monitor.state.fleet.get(NODE), 'whatever node is shown, the frame of the page shows it');
  s.monitor.selectNode('arm');
  t.ok(s.monitor.state.fleet.get(NODE));
});

t.test('after an outage of the service the monitor reconnects and fills the gap', async (t) => {
  const now = Date.now();
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.measure(now - 10_000, { cpu_percent: 1 });
  await until(() => s.monitor.state.series.length === 1, 'the sample is shown');
  await s.service.stop();
  await until(() => s.monitor.state.connection.phase === 'waiting', 'the outage is detected');
  t.equal(s.monitor.state.health?.cpu_percent, 1, 'the last known status is kept');
  s.service.history = Array.from({ length: 10 }, (_, i) => health(now - 10_000 + i * 1000, { cpu_percent: i + 1 }));
  s.service.latest = health(Date.now());
  await s.service.start();
  await until(isLive(s), 'it is live again');
  t.equal(s.service.lastEventIds.at(-1), '1', 'it resumes after the last event received');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

t.test('if the missed events cannot be read, the page continues with the present state', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.measure(Date.now(), { cpu_percent: 1 });
  await until(() => s.monitor.state.health?.cpu_percent === 1, 'a sample arrives');
  s.service.isResumable = false;
  await s.service.stop();
  await until(() => s.monitor.state.connection.phase === 'waiting', 'the outage is detected');
  await s.service.start();
  await until(isLive(s), 'it is live again');
  t.same([s.service.lastEventIds.at(-2), s.service.lastEventIds.at(-1)], ['1', undefined], 'it gives up resuming');
  s.service.measure(Date.now(), { cpu_percent: 2 });
  await until(() => s.monitor.state.health?.cpu_percent === 2, 'samples arrive');
});

t.test('after the service closes an old stream, the next one resumes from the last event and nothing is loaded again', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  for (let second = 0; second < 65; second += 1) {
    virtualMs += 1000;
    s.service.measure(Date.now(), { cpu_percent: second });
    await until(() => s.monitor.state.health?.cpu_percent === second, 'the sample is shown');
  }
  const loads = (): number => s.service.requests.filter((url) => url.startsWith('/health/history')).length;
  const before = loads();
  const phases = new Set<string>();
  for (const stream of s.service.streams) stream.end('retry: 100\nid: last\n\n');
  await until(() => {
    phases.add(s.monitor.state.connection.phase);
    return s.service.lastEventIds.length === 2 && s.service.streams.size === 1;
  }, 'the next stream is open');
  t.same([...phases], ['live'], 'the page does not change');
  t.equal(s.service.lastEventIds.at(-1), 'last');
  s.service.measure(Date.now(), { cpu_percent: 99 });
  await until(() => s.monitor.state.health?.cpu_percent === 99, 'samples arrive');
  t.equal(loads(), before);
});

t.test('after a pause the page loads the present state, and not the events that it missed', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.measure(Date.now(), { cpu_percent: 5 });
  await until(() => s.monitor.state.health?.cpu_percent === 5, 'a sample arrives');
  s.monitor.stop();
  await until(() => s.service.streams.size === 0, 'the stream is closed');
  t.equal(s.monitor.state.health, null, 'no status is shown that may be wrong by now');
  t.equal(s.monitor.state.connection.phase, 'connecting');
  virtualMs += 3_600_000;
  s.service.latest = health(Date.now(), { cpu_percent: 60 });
  s.monitor.start();
  s.monitor.start();
  await until(isLive(s), 'it is live again');
  t.equal(s.monitor.state.health?.cpu_percent, 60);
  t.same(s.service.lastEventIds, [undefined, undefined]);
});

t.test('a service that answers but does not measure becomes stale', async (t) => {
  const s = await startMonitor(t, (service) => {
    service.answers['/status'] = {
      ...HEALTHY_STATUS,
      publish: { configured_hertz: 1000, measured_hertz: null, missed: 0 },
      nodes: [{ node_name: NODE, local: true, status: 'OK', timestamp: new Date(Date.now()).toISOString(), age_seconds: 0 }],
    };
  });
  await until(isLive(s), 'it is live');
  await until(() => s.monitor.state.connection.phase === 'stale', 'it is stale');
  await until(() => s.monitor.state.connection.isResponding, 'a request was answered');
  s.service.measure();
  await until(isLive(s), 'it is live again');
});

t.test(
  'without a token or with a wrong one the page is locked; with the right one it is live and sends it with every request',
  async (t) => {
    const s = await startMonitor(t, (service) => {
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
    await until(isLocked, 'the next request for /status is refused');
  },
);

t.test('an unreadable store costs only history and alerts; both are loaded when it is readable again', async (t) => {
  const s = await startMonitor(t, (service) => {
    service.answers['/health/history'] = 503;
    service.answers['/alerts'] = 503;
    service.history = [health(Date.now() - 1000)];
  });
  await until(isLive(s), 'it is live');
  t.equal(s.monitor.state.history, 'failed');
  t.equal(s.monitor.state.alerts, 'failed', 'it does not claim that there are no alerts');
  s.service.answers = {};
  await until(() => s.monitor.state.history === 'ready' && s.monitor.state.alerts === 'ready', 'both are loaded');
  t.equal(s.monitor.state.series.length, 1);
});

t.test('a timeline without the alerts that could not be loaded is not complete, and is loaded again', async (t) => {
  const s = await startMonitor(t, (service) => {
    service.answers['/alerts'] = 503;
    service.history = [health(Date.now() - 1000)];
  });
  await until(isLive(s), 'it is live');
  t.equal(s.monitor.state.history, 'failed');
  t.equal(s.monitor.state.series.length, 1, 'the curves are shown');
  s.service.answers = {};
  await until(() => s.monitor.state.history === 'ready', 'it is loaded');
});

t.test('before the first measurement the connection is stale, not failed', async (t) => {
  const s = await startMonitor(t, (service) => {
    service.latest = null;
  });
  await until(() => s.monitor.state.connection.phase === 'stale', 'it is stale');
  t.equal(s.monitor.state.health, null);
  s.service.measure();
  await until(isLive(s), 'it is live');
});

t.test('the page reloads the alerts when the service counts a different number', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.open = [alert('missed')];
  await until(() => s.monitor.state.book.open.length === 1, 'the alert is listed');
  t.pass();
});

t.test("another node's measurements do not enter this machine's charts", async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.send('health', health(Date.now(), { node_name: 'robot', cpu_percent: 99 }));
  s.service.measure(Date.now(), { cpu_percent: 7 });
  await until(() => s.monitor.state.health?.cpu_percent === 7, 'the local sample is shown');
  t.equal(s.monitor.state.series.length, 1);
});

t.test('a safe shutdown is shown from the event alone, even if /status fails', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.service.answers['/status'] = 500;
  const event = {
    action: 'dry-run',
    reason: 'MANUAL',
    requested_by: 'Zoë',
    message: 'no',
    seconds_left: 9,
    timestamp: '2026-03-04T05:06:07Z',
  };
  s.service.send('shutdown', { ...event, state: 'in_progress' });
  await until(() => s.monitor.state.status?.shutdown.state === 'in_progress', 'the shutdown is shown');
  t.match(s.monitor.state.status?.shutdown, { requested_by: 'Zoë', seconds_left: 9, ended: null });
  s.service.send('shutdown', { ...event, state: 'aborted' });
  await until(() => s.monitor.state.status?.shutdown.state === 'aborted', 'its end is shown');
  t.match(s.monitor.state.status?.shutdown, { ended: event.timestamp });
  s.service.answers = {};
  await until(() => s.monitor.state.status?.shutdown.state === 'none', 'the next /status replaces it');
});

t.test('an event that is not JSON is skipped', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  for (const stream of s.service.streams) stream.write('event: health\ndata: {"cpu\n\n');
  s.service.measure(Date.now(), { cpu_percent: 7 });
  await until(() => s.monitor.state.health?.cpu_percent === 7, 'the next sample is shown');
  t.equal(s.monitor.state.connection.failures, 0);
});

t.test('another window is requested in steps and shown', async (t) => {
  const s = await startMonitor(t);
  await until(isLive(s), 'it is live');
  s.monitor.selectRange({ kind: 'live', window: '1h' });
  s.monitor.selectRange({ kind: 'live', window: '24h' });
  await until(
    () => s.monitor.state.history === 'ready' && s.service.requests.includes('/health/history?hours=24.000000&step=1m'),
    'the history is loaded',
  );
  t.equal(s.monitor.state.series.windowMs, 86_400_000);
  t.ok(isLive(s)(), 'an aborted request is not a failure');
});

t.test('samples between two draws are drawn together', async (t) => {
  const s = await startMonitor(t, () => {}, { ...FAST, renderMs: 600_000 });
  await until(isLive(s), 'it is live');
  const now = Date.now();
  for (let i = 0; i < 1000; i += 1) s.service.measure(now + i, { cpu_percent: i / 10 });
  await until(() => s.monitor.state.health?.cpu_percent === 99.9, 'the last sample is applied');
  t.equal(s.draws(), 1, 'only the first change');
  t.ok(s.monitor.state.series.length <= 3);
});

t.test('selecting a remote node shows its values and its history by its own clock; selecting the local one returns', async (t) => {
  const behindMs = -2 * 3_600_000;
  const now = Date.now();
  const s = await startMonitor(t, (service) => {
    service.remoteNodes = [remoteNode('arm', behindMs), remoteNode('/fleet/cart', 0, 40)];
    service.history = [health(now - 1000), health(now + behindMs - 1000, { node_name: 'arm', cpu_percent: 5 })];
  });
  await until(isLive(s), 'it is live');
  const tile = (name: string): Tile | undefined => {
    const { fleet, status, statusAtMs } = s.monitor.state;
    return fleet.tiles(status?.nodes ?? [], statusAtMs, performance.now()).find(({ node }) => node === name);
  };
  await until(() => tile('/fleet/cart')?.readings?.cpu_percent === 77, 'the stale node was requested');
  t.equal(tile('/fleet/cart')?.isStale, true);
  s.monitor.selectNode('arm');
  t.equal(s.monitor.state.node, 'arm');
  await until(() => s.monitor.state.history === 'ready', 'its history is loaded');
  t.same(s.monitor.state.series.columns(3000).metrics[0], [5]);
  const historyUrl = s.service.requests.findLast((url) => url.startsWith('/health/history')) ?? '';
  const query = new URLSearchParams(historyUrl.split('?')[1]);
  t.equal(query.get('node'), 'arm');
  t.ok(Math.abs(Date.parse(query.get('to') ?? '') - (Date.now() + behindMs)) < 60_000, 'up to the time of its own clock');
  t.ok(Math.abs(s.monitor.clocks.shownNowMs - (Date.now() + behindMs)) < 60_000);
  s.service.send('health', health(Date.now() + behindMs, { node_name: 'arm', cpu_percent: 6 }));
  await until(() => s.monitor.state.health?.cpu_percent === 6, 'its sample is shown');
  s.service.measure(Date.now(), { cpu_percent: 50 });
  s.service.send('health', health(Date.now() + behindMs - 5000, { node_name: 'arm', cpu_percent: 99 }));
  await until(() => tile(NODE)?.readings?.cpu_percent === 50, 'the local sample is received as well');
  t.equal(s.monitor.state.health?.cpu_percent, 6, 'neither another node nor a status out of order is shown');
  t.equal(tile('arm')?.readings?.cpu_percent, 6);
  s.monitor.selectNode(NODE);
  t.equal(s.monitor.state.health?.cpu_percent, 50);
  await until(
    () => s.service.requests.findLast((url) => url.startsWith('/health/history')) === '/health/history?hours=0.083333',
    'the local history is requested',
  );
  t.ok(isLive(s)(), 'the connection stays live');
});

t.test('an unknown node in the URL is shown without data', async (t) => {
  const service = new FakeService();
  const base = await service.start();
  const monitor = new Monitor(new Api(base, { get: () => null, set: () => {} }), () => {}, FAST, 'unknown');
  t.teardown(async () => {
    monitor.stop();
    await service.stop();
  });
  monitor.start();
  await until(() => monitor.state.connection.phase === 'live', 'it is live');
  t.match(monitor.state, { node: 'unknown', local: NODE, health: null });
});
