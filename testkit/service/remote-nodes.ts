import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { judgingRules } from '../../src/app/judge.ts';
import { Live, RateMeter } from '../../src/app/live.ts';
import { leftNodes, type NodeFile, nodeAddresses } from '../../src/app/remote-nodes/node-file.ts';
import type { RemoteNodeRules } from '../../src/app/remote-nodes/remote-node.ts';
import { RemoteNodes } from '../../src/app/remote-nodes/remote-nodes.ts';
import { View } from '../../src/app/view.ts';
import { MemorySource } from '../../src/collect/memory.ts';
import { PowerSource } from '../../src/collect/power.ts';
import { Sampler } from '../../src/collect/sampler.ts';
import { TemperatureSource } from '../../src/collect/temperature.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { LogLevel } from '../../src/core/ports.ts';
import { type Clocks, HOUR_MS, isoUtc } from '../../src/core/time/time.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { RestServer } from '../../src/http/server.ts';
import { Store } from '../../src/store/store.ts';
import { boundSockets, peerUser } from '../../src/system/socket-bounds.ts';
import { EventReader } from './events.ts';
import { ROOT } from './service.ts';

export const LOCAL = 'health_monitor';

const WITHOUT_GRAPH: StatusDocument['ros'] = {
  transport: 'off',
  reason: 'the test supplies the messages of remote nodes',
  domain_id: null,
  peers: null,
  subscribers: null,
  refused: 0,
  published: null,
  observing: false,
  observers: [],
  problem: null,
  note: null,
};

/** The state of a service without a safe shutdown. */
export const NO_SHUTDOWN: StatusDocument['shutdown'] = {
  enabled: false,
  action: 'dry-run',
  problem: null,
  state: 'none',
  request_id: null,
  reason: null,
  requested_by: null,
  step: null,
  seconds_left: null,
  started: null,
  ended: null,
  message: null,
  accepted: 0,
  refused: 0,
  requests: [],
};

/** A clock that only the test advances. */
export class TestClocks implements Clocks {
  seconds = 1000;
  /** A recent time, so that retention keeps the stored samples. */
  wallMs = Math.floor(Date.now() / HOUR_MS - 3) * HOUR_MS;

  monotonicSeconds(): number {
    return this.seconds;
  }

  wallMilliseconds(): number {
    return this.wallMs;
  }

  bootSeconds(): number {
    return this.seconds;
  }

  pass(seconds: number): void {
    this.seconds += seconds;
    this.wallMs += seconds * 1000;
  }
}

/** The clocks of the machine. */
export class RealClocks extends TestClocks {
  override monotonicSeconds(): number {
    return performance.now() / 1000;
  }

  override wallMilliseconds(): number {
    return Date.now();
  }
}

export interface Logged {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export function statusOf(node: string, timestampMs: number, more: Partial<HealthStatus> = {}): HealthStatus {
  return {
    cpu_percent: (timestampMs / 1000) % 97,
    memory_percent: 40,
    disk_percent: 30,
    temperature: null,
    status: 'OK',
    node_name: node,
    timestamp: isoUtc(timestampMs),
    ...more,
  };
}

export function alertOf(node: string, id: string, timestampMs: number, more: Partial<Alert> = {}): Alert {
  return {
    alert_id: `${node}/cpu_percent/${id}`,
    severity: 'WARNING',
    metric: 'cpu_percent',
    value: 85,
    threshold: 80,
    timestamp: isoUtc(timestampMs),
    resolved: false,
    ...more,
  };
}

export interface InProcessServiceOptions {
  readonly rules?: RemoteNodeRules;
  readonly localNode?: string;
  readonly isOn?: boolean;
  /** Timeout for the headers of a request. */
  readonly headersSeconds?: number;
  /** Folder of the built dashboard; without it there is no page. */
  readonly dashboardFolder?: string;
}

/**
 * The service without sampling and ROS: the real store, REST server and RemoteNodes, wired as in the service. The test supplies
 * the messages of the graph.
 */
export class InProcessService {
  readonly clocks: TestClocks;
  readonly live = new Live();
  readonly logged: Logged[] = [];
  /** Published alerts of the local node. */
  readonly published: Alert[] = [];
  readonly store: Store;
  readonly rest: RestServer;
  readonly remoteNodes: RemoteNodes;
  isOffline = false;
  readonly #localNode: string;
  readonly #left: NodeFile<number>;
  readonly #addresses: NodeFile<string>;
  #alerting: Promise<void> = Promise.resolve();
  #url = '';
  #stopped = false;

  constructor(folder: string, clocks: TestClocks, options: InProcessServiceOptions = {}) {
    const {
      dashboardFolder = join(ROOT, 'docs'),
      isOn = true,
      localNode = LOCAL,
      rules = { graceSeconds: 2, forgetAfterHours: 168, expectedNodes: [] },
    } = options;
    this.clocks = clocks;
    this.#localNode = localNode;
    const log = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      this.logged.push({ level, message, fields });
    };
    const now = (): number => clocks.monotonicSeconds();
    this.store = new Store({
      dataPath: join(folder, 'data'),
      maxBytes: 512e6,
      node: localNode,
      hertz: 1,
      worker: new URL('../../src/store/thread/worker.ts', import.meta.url),
      environment: { RUNTIME_DIRECTORY: join(folder, 'run') },
      log,
      monotonicSeconds: now,
      onLateOpen: (alerts, nodes) => this.remoteNodes.adopt(alerts, nodes),
    });
    const view = new View({
      config: { ...DEFAULT_CONFIG, node_name: localNode },
      configFile: 'test.yaml',
      dataPath: join(folder, 'data'),
      reportFolders: [join(folder, 'data')],
      version: '0',
      isPackage: true,
      clocks,
      log,
      localNode,
      live: this.live,
      rate: new RateMeter(),
      sampler: new Sampler([], clocks, 1, () => undefined),
      temperature: new TemperatureSource(folder, null, now, log),
      disks: () => [],
      memory: new MemorySource(folder),
      power: new PowerSource(folder, now, log),
      store: this.store,
      inventoryProgram: new URL('file:///none'),
      remote: () => this.remoteNodes.counts(),
      shutdown: async () => NO_SHUTDOWN,
      ros: () => WITHOUT_GRAPH,
      channelProblem: () => null,
      controlSocket: () => null,
      ports: () => [],
      thresholds: () => judgingRules(DEFAULT_CONFIG, localNode).thresholds,
    });
    this.rest = new RestServer({
      host: '127.0.0.1',
      port: 0,
      token: null,
      allowedOrigins: [],
      allowedHosts: [],
      machineNames: { names: () => [], readAgain: async () => undefined },
      findUsers: async () => [],
      boundSockets,
      peerUser,
      maxConnections: 128,
      maxEventStreams: 32,
      ...(options.headersSeconds === undefined ? {} : { headersSeconds: options.headersSeconds }),
      dashboardFolder,
      openapiFile: join(ROOT, 'docs/openapi.json'),
      view,
      log,
    });
    this.#left = leftNodes(join(folder, 'data'), log);
    this.#addresses = nodeAddresses(join(folder, 'data'), log);
    this.remoteNodes = new RemoteNodes({
      localNode,
      isOn,
      rules,
      clocks,
      log,
      live: this.live,
      store: this.store,
      left: this.#left,
      addresses: this.#addresses,
      events: this.rest.events,
      isOffline: () => this.isOffline,
      firstObserver: () => null,
      publishAlerts: (changes) => this.#publishAlerts(changes),
    });
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    this.live.addNames([this.#localNode]);
    const { address, port } = (await this.rest.start()) as AddressInfo;
    this.#url = `http://${address}:${port}`;
    const past = await this.store.start();
    this.live.addNames(past.nodes);
    for (const alert of past.openAlerts) this.live.setAlert(alert);
    this.remoteNodes.start(past);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.remoteNodes.stop();
    await this.#alerting;
    await this.rest.stop();
    await this.#left.flush();
    await this.#addresses.flush();
    await this.store.stop();
  }

  /** Records a sample of the local node. */
  measure(more: Partial<HealthStatus> = {}): HealthStatus {
    const nowMs = this.clocks.wallMilliseconds();
    const status = statusOf(this.#localNode, nowMs, more);
    const line = JSON.stringify(status);
    const cursor = this.store.recordHealth(status, line, nowMs);
    this.live.setStatus(status, this.clocks.monotonicSeconds(), 1);
    this.rest.events.publishHealth(status, line, cursor);
    return status;
  }

  /** Advances the clock by `seconds`, one at a time: calls `every`, then RemoteNodes.check(). */
  async run(seconds: number, every: (second: number) => void = () => undefined): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      every(second);
      this.clocks.pass(1);
      this.remoteNodes.check();
      // Lets pending disk operations proceed.
      if (second % 20 === 19) await new Promise(setImmediate);
    }
    await this.settled();
  }

  /** Resolves when every recorded alert was published. */
  async settled(): Promise<void> {
    await this.#alerting;
    await this.store.clockEvents(1);
    await new Promise(setImmediate);
    await this.#alerting;
  }

  async json<T>(path: string): Promise<T> {
    return (await (await fetch(this.#url + path)).json()) as T;
  }

  events(path = '/events', lastEventId: string | null = null): Promise<EventReader> {
    return EventReader.open(this.#url, path, lastEventId === null ? {} : { 'Last-Event-ID': lastEventId });
  }

  #publishAlerts(changes: readonly Alert[]): void {
    for (const alert of changes) {
      this.live.setAlert(alert);
      this.#alerting = this.#alerting.then(async () => {
        const { cursor } = await this.store.recordAlert(alert);
        this.published.push(alert);
        this.rest.events.publishAlert(alert, cursor);
      });
    }
  }
}

/** Starts a service on a folder that may have data of an earlier service. It is stopped at the end of the test. */
export async function startInProcess(
  t: Test,
  folder: string,
  clocks = new TestClocks(),
  options: InProcessServiceOptions = {},
): Promise<InProcessService> {
  mkdirSync(join(folder, 'run'), { recursive: true });
  writeFileSync(join(folder, 'empty'), '');
  const service = new InProcessService(folder, clocks, options);
  t.teardown(() => service.stop());
  await service.start();
  return service;
}
