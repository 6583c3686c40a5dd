import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { CpuSource } from '../collect/cpu.ts';
import { DiskSource } from '../collect/disk.ts';
import { MemorySource } from '../collect/memory.ts';
import { PowerSource } from '../collect/power.ts';
import { Probe } from '../collect/probe.ts';
import { Sampler } from '../collect/sampler.ts';
import { TemperatureSource } from '../collect/temperature.ts';
import type { Config } from '../config/schema.ts';
import type { Alert } from '../core/alert.ts';
import { type ClockReading, compareClocks } from '../core/clock-watch.ts';
import { type Sample, STALE_AFTER_PERIODS, toHealthStatus } from '../core/health-status.ts';
import type { Log, Publisher } from '../core/ports.ts';
import type { JudgingRules } from '../core/threshold-monitor.ts';
import type { Clocks } from '../core/time.ts';
import { RestServer } from '../http/server.ts';
import { Store } from '../store/store.ts';
import { Judge } from './judge.ts';
import { Live } from './live.ts';
import { PROGRAMS } from './programs.ts';
import { RateMeter } from './rate-meter.ts';
import { View } from './view.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly configFile: string;
  readonly dataPath: string;
  readonly version: string;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly environment: NodeJS.ProcessEnv;
  /** Where procfs and sysfs are; a recorded tree in tests. */
  readonly procRoot: string;
  readonly sysRoot: string;
}

/** The first half of the first CPU pair and the first sample are this far apart: 25 ticks a core. */
const FIRST_SAMPLE_SECONDS = 0.25;
/** How often the three clocks are compared. */
const COMPARE_CLOCKS_SECONDS = 1;

export function judgingRules(config: Config): JudgingRules {
  const { thresholds, alerts } = config;
  return {
    nodeName: config.node_name,
    thresholds: {
      cpu_percent: thresholds.cpu,
      memory_percent: thresholds.memory,
      disk_percent: thresholds.disk,
      temperature: thresholds.temperature,
    },
    timing: {
      hysteresisPercent: alerts.hysteresis_percent,
      raiseAfterSeconds: alerts.raise_after_seconds,
      clearAfterSeconds: alerts.clear_after_seconds,
      sensorTimeoutSeconds: alerts.sensor_timeout_seconds,
      longestIntervalSeconds: STALE_AFTER_PERIODS / config.publish_frequency,
    },
  };
}

/**
 * The composition root: wires the parts, starts them in order and stops them in reverse. A sample's way: sampler → health
 * status and judge → store (tail) → publishers and REST.
 */
export class Service {
  readonly #options: ServiceOptions;
  readonly #temperature: TemperatureSource;
  readonly #sampler: Sampler;
  readonly #store: Store;
  readonly #judge: Judge;
  readonly #live = new Live();
  readonly #rate = new RateMeter();
  readonly #view: View;
  readonly #rest: RestServer;
  readonly #publishers: Publisher[];
  #rules: JudgingRules;
  #lastClocks: ClockReading | null = null;
  /** Changes on their way to the store and the publishers; none overtakes the one before that still waits for the disk. */
  #alerting: Promise<void> = Promise.resolve();

  constructor(options: ServiceOptions) {
    this.#options = options;
    const { clocks, config, log, procRoot, sysRoot } = options;
    const now = (): number => clocks.monotonicSeconds();
    this.#rules = judgingRules(config);
    this.#judge = new Judge(this.#rules);
    this.#temperature = new TemperatureSource(sysRoot, config.temperature.sensor, now, log);
    const sources = [new CpuSource(procRoot, now), new MemorySource(procRoot), new DiskSource(config.disk.paths), this.#temperature];
    this.#sampler = new Sampler(
      sources.map((source) => new Probe(source, now)),
      clocks,
      1 / config.publish_frequency,
      (sample) => this.#onSample(sample),
    );
    this.#store = new Store({
      dataPath: options.dataPath,
      maxBytes: config.storage.max_megabytes * 1e6,
      node: config.node_name,
      hertz: config.publish_frequency,
      worker: PROGRAMS.storeWorker,
      environment: options.environment,
      log,
      monotonicSeconds: now,
      onLateOpen: (alerts) => this.#onLateOpen(alerts),
    });
    this.#view = new View({
      ...options,
      live: this.#live,
      rate: this.#rate,
      sampler: this.#sampler,
      temperature: this.#temperature,
      power: new PowerSource(sysRoot, now),
      store: this.#store,
      inventoryProgram: PROGRAMS.inventory,
    });
    this.#rest = new RestServer({
      host: config.rest.host,
      port: config.rest.port,
      token: readToken(config.rest.token_file),
      allowedOrigins: config.rest.allowed_origins,
      maxConnections: config.rest.max_connections,
      maxEventStreams: config.rest.max_event_streams,
      dashboardFolder: fileURLToPath(PROGRAMS.dashboard),
      openapiFile: fileURLToPath(PROGRAMS.openapi),
      view: this.#view,
      log,
    });
    this.#publishers = [this.#rest];
  }

  /**
   * Starts measuring at once, then the store and REST. Rejects when the data folder or the port is taken; nothing is left
   * running then.
   */
  async start(): Promise<AddressInfo> {
    const { clocks, log } = this.#options;
    this.#live.know([this.#rules.nodeName]);
    const sensors = this.#temperature.search();
    this.#sampler.start(FIRST_SAMPLE_SECONDS);
    try {
      // The port first: it is the quickest to say that another one is running.
      const address = await this.#rest.start();
      const past = await this.#store.start();
      this.#live.know(past.nodes);
      for (const alert of past.openAlerts) this.#live.setAlert(alert);
      if (past.openAlerts.length > 0) log('notice', 'alerts open from before', { count: past.openAlerts.length });
      this.#publishAlerts(this.#judge.begin(past, clocks.monotonicSeconds(), clocks.wallMilliseconds()));
      await sensors;
      void this.#view.readInventory();
      return address;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops measuring, lets the last alerts out, closes REST, writes what is left. */
  async stop(): Promise<void> {
    this.#sampler.stop();
    await this.#alerting;
    await this.#rest.stop();
    await this.#store.stop();
  }

  /** Applies what may change without a restart: thresholds and alert timing. */
  reload(config: Config): void {
    this.#rules = { ...judgingRules(config), nodeName: this.#rules.nodeName };
    this.#judge.setRules(this.#rules);
    this.#view.setConfigLoaded();
  }

  /** Notes why a reload changed nothing, for /status. */
  reloadFailed(problem: string): void {
    this.#view.setConfigProblem(problem);
  }

  #onSample(sample: Sample): void {
    this.#compareClocks();
    const status = toHealthStatus(sample, this.#rules.nodeName, this.#rules.thresholds);
    const line = JSON.stringify(status);
    this.#store.recordHealth(status, line, sample.timestampMs);
    this.#live.setStatus(status, sample.monotonicSeconds, 1 / this.#options.config.publish_frequency);
    this.#rate.count(sample.monotonicSeconds);
    for (const publisher of this.#publishers) publisher.publishHealth(status, line);
    const changes = this.#judge.judge(sample);
    if (changes.length > 0) this.#publishAlerts(changes);
  }

  #publishAlerts(changes: readonly Alert[]): void {
    for (const alert of changes) {
      this.#live.setAlert(alert);
      this.#alerting = this.#alerting.then(() => this.#publishAlert(alert));
    }
  }

  async #publishAlert(alert: Alert): Promise<void> {
    await this.#store.recordAlert(alert);
    const { alert_id, severity, metric, value, threshold } = alert;
    const level = alert.resolved ? 'notice' : severity === 'WARNING' ? 'warning' : 'error';
    this.#options.log(level, alert.resolved ? 'alert resolved' : `alert ${severity}`, { metric, value, threshold, alert_id });
    for (const publisher of this.#publishers) publisher.publishAlert(alert);
  }

  #onLateOpen(openAlerts: readonly Alert[]): void {
    const mine = `${this.#rules.nodeName}/`;
    for (const alert of openAlerts) if (!alert.alert_id.startsWith(mine)) this.#live.setAlert(alert);
    this.#publishAlerts(this.#judge.adopt(openAlerts, this.#options.clocks.wallMilliseconds()));
    for (const alert of this.#judge.openAlerts()) this.#live.setAlert(alert);
  }

  #compareClocks(): void {
    const { clocks, log } = this.#options;
    const monotonicSeconds = clocks.monotonicSeconds();
    const last = this.#lastClocks;
    // Reading boot time costs a system call or two: once a second is enough at any frequency.
    if (last && monotonicSeconds - last.monotonicSeconds < COMPARE_CLOCKS_SECONDS) return;
    const reading: ClockReading = { monotonicSeconds, wallMilliseconds: clocks.wallMilliseconds(), bootSeconds: clocks.bootSeconds() };
    this.#lastClocks = reading;
    if (!last) return;
    for (const event of compareClocks(last, reading)) {
      this.#store.recordClockEvent(event);
      const what = event.kind === 'suspend' ? 'the machine was asleep' : 'the wall clock was stepped';
      log('notice', what, { seconds: event.delta_seconds });
    }
  }
}

export class UnusableToken extends Error {
  override readonly name = 'UnusableToken';
}

function readToken(file: string | null): string | null {
  if (file === null) return null;
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UnusableToken(`rest.token_file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
  if (!/^\S{16,512}$/.test(token)) throw new UnusableToken(`rest.token_file ${file} must hold one word of 16 to 512 characters`);
  return token;
}
