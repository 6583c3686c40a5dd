import { readdir } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { MemorySource } from '../collect/memory.ts';
import type { PowerSource } from '../collect/power.ts';
import type { Sampler } from '../collect/sampler.ts';
import type { TemperatureSource } from '../collect/temperature.ts';
import type { Config } from '../config/schema.ts';
import { type Alert, type ChannelMetric, type Threshold, type Thresholds, worstStatus } from '../core/alerts/alert.ts';
import { type DiskReading, type HealthStatus, STALE_AFTER_PERIODS } from '../core/health-status.ts';
import type { HistoryReader, Log } from '../core/ports.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import type { StatusSummary } from '../core/supervision.ts';
import { type ClockCorrection, corrected } from '../core/time/clock-watch.ts';
import { type Clocks, isoUtc, roundToMilliseconds } from '../core/time/time.ts';
import type { ReportsDocument } from '../http/api/reports-schema.ts';
import type { StatusDocument } from '../http/api/schema.ts';
import type { ReportFormat, ServiceView } from '../http/view.ts';
import { type Inventory, readInventory } from '../system/inventory.ts';
import type { OpenSocket } from '../system/open-sockets.ts';
import type { Live, RateMeter } from './live.ts';
import { OpsJobs } from './ops-jobs.ts';
import { Reports } from './reports.ts';

export interface ViewOptions {
  readonly config: Config;
  readonly configFile: string;
  readonly dataPath: string;
  /** Folders with `reports/`, the data folder first. */
  readonly reportFolders: readonly string[];
  readonly version: string;
  readonly isPackage: boolean;
  readonly clocks: Clocks;
  readonly log: Log;
  /** Readings of the last sample. */
  readonly disks: () => readonly DiskReading[];
  readonly memory: MemorySource;
  readonly power: PowerSource;
  readonly live: Live;
  readonly rate: RateMeter;
  readonly sampler: Sampler;
  readonly temperature: TemperatureSource;
  readonly store: HistoryReader;
  readonly inventoryProgram: URL;
  /** Counters of data received from remote nodes. */
  readonly remote: () => StatusDocument['remote'];
  readonly shutdown: () => Promise<StatusDocument['shutdown']>;
  readonly ros: () => StatusDocument['ros'];
  /** Why a channel does not work; null: it does. */
  readonly channelProblem: (channel: ChannelMetric) => string | null;
  /** Path of the control socket; null: it is not listening. */
  readonly controlSocket: () => string | null;
  readonly ports: () => StatusDocument['ports'];
  /** Thresholds in force for this machine's own metrics. */
  readonly thresholds: () => Thresholds;
  /** `node_name` of this process's own statuses: the configured name with its namespace on the graph. */
  readonly localNode: string;
}

const CLOCK_EVENTS_SHOWN = 20;

export class View implements ServiceView {
  readonly #options: ViewOptions;
  #startedMs: number;
  readonly #startedSeconds: number;
  readonly #jobs: OpsJobs;
  readonly #reports: Reports;
  #inventory: Inventory | null = null;
  #configLoadedMs: number;
  #configProblem: string | null = null;
  #restartNeeded: readonly string[] = [];

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#startedMs = options.clocks.wallMilliseconds();
    this.#startedSeconds = options.clocks.monotonicSeconds();
    this.#configLoadedMs = this.#startedMs;
    this.#jobs = new OpsJobs({ ...options, wallMilliseconds: () => options.clocks.wallMilliseconds() });
    this.#reports = new Reports(options.reportFolders);
  }

  get localNode(): string {
    return this.#options.localNode;
  }

  get history(): HistoryReader {
    return this.#options.store;
  }

  reports(): Promise<ReportsDocument | null> {
    return this.#reports.list();
  }

  report(name: string, format: ReportFormat): Promise<Buffer | 'missing' | null> {
    return this.#reports.read(name, format);
  }

  nodes(): string[] {
    return [...new Set([this.localNode, ...this.#options.live.nodes()])];
  }

  isKnownNode(node: string): boolean {
    return node === this.localNode || this.#options.live.isKnown(node);
  }

  current(node: string): HealthStatus | null {
    return this.#options.live.node(node, this.#options.clocks.monotonicSeconds()).status;
  }

  openAlerts(): readonly Alert[] {
    return this.#options.live.openAlerts();
  }

  thresholds(): Thresholds {
    return this.#options.thresholds();
  }

  setConfigLoaded(restartNeeded: readonly string[]): void {
    this.#restartNeeded = restartNeeded;
    this.#configLoadedMs = this.#options.clocks.wallMilliseconds();
    this.#configProblem = null;
  }

  /** The clock stepped: corrects the times that the service was started and configured at. */
  correct(correction: ClockCorrection): void {
    this.#startedMs = corrected(this.#startedMs, correction);
    this.#configLoadedMs = corrected(this.#configLoadedMs, correction);
  }

  setConfigProblem(problem: string): void {
    this.#configProblem = problem;
  }

  /** Reads the hardware inventory once. A failure leaves `host` null and is logged. */
  async readInventory(): Promise<void> {
    try {
      this.#inventory = await readInventory(this.#options.inventoryProgram);
    } catch (error) {
      this.#options.log('warning', 'cannot read the inventory of this machine', { error: (error as Error).message.split('\n')[0] });
    }
  }

  /** Input of the service manager's status line. */
  summary(shutdown: ShutdownProgress | null): StatusSummary {
    const { channelProblem, live, ros, store } = this.#options;
    const storage = store.state();
    return {
      status: this.current(this.localNode),
      openAlerts: live.openAlerts().length,
      otherNodes: this.nodes().length - 1,
      transport: ros().transport,
      restProblem: channelProblem('rest_api'),
      rosProblem: channelProblem('ros_graph'),
      restartNeeded: this.#restartNeeded,
      storageError: storage.state === 'degraded' ? (storage.error ?? 'not writable') : null,
      shutdown,
    };
  }

  async status(): Promise<Omit<StatusDocument, 'rest'>> {
    const { clocks, config, isPackage, live, rate, sampler, store, temperature, version } = this.#options;
    const [events, process, ops, shutdown] = await Promise.all([
      store.clockEvents(CLOCK_EVENTS_SHOWN).catch(() => []), // `storage.error` has the reason.
      ownProcess(),
      this.#jobs.read(),
      this.#options.shutdown(),
    ]);
    // Nothing is awaited below, so that the counts are consistent with each other.
    const now = clocks.monotonicSeconds();
    const nowMs = clocks.wallMilliseconds();
    const { taken, missed } = sampler.counts;
    const measured = rate.hertz(now);
    const choice = temperature.choice;
    const { lastUndervoltageSeconds, ...power } = this.#options.power.state();
    const nodes = this.nodes();
    return {
      status: worstStatus([
        ...nodes
          .map((name) => live.node(name, now))
          .flatMap(({ leftMs, status }) => (leftMs === null ? (status?.status ?? 'UNKNOWN') : [])),
        ...live.openAlerts().map(({ severity }) => severity),
      ]),
      version,
      installed: isPackage,
      started: isoUtc(this.#startedMs),
      uptime_seconds: roundToMilliseconds(now - this.#startedSeconds),
      host: this.#inventory && { ...this.#inventory, hostname: hostname() }, // A machine can be renamed at any time.
      nodes: nodes.map((name) => {
        const { status, ageSeconds, clockAheadSeconds, conflict, lastSeenSeconds, leftMs, periodSeconds, stale } = live.node(name, now);
        const local = name === this.localNode;
        return {
          node_name: name,
          local,
          status: status?.status ?? 'UNKNOWN',
          timestamp: status?.timestamp ?? null,
          age_seconds: ageSeconds === null ? null : roundToMilliseconds(ageSeconds),
          last_seen: lastSeenSeconds === null ? null : isoUtc(nowMs - Math.round((now - lastSeenSeconds) * 1000)),
          period_seconds: periodSeconds,
          clock_ahead_seconds: clockAheadSeconds,
          conflict_addresses: [...conflict],
          open_alerts: live.openAlertsOf(name).length,
          left: leftMs === null ? null : isoUtc(leftMs),
          stale: local ? ageSeconds !== null && ageSeconds > STALE_AFTER_PERIODS / config.publish_frequency : stale,
        };
      }),
      remote: this.#options.remote(),
      open_alerts: live.openBySeverity(),
      publish: {
        configured_hertz: config.publish_frequency,
        measured_hertz: measured === null ? null : Math.round(measured * 1000) / 1000,
        samples: taken,
        missed,
      },
      thresholds: shownThresholds(this.#options.thresholds()),
      collectors: sampler.probeStates().map((state) => ({
        ...state,
        age_seconds: state.age_seconds === null ? null : roundToMilliseconds(state.age_seconds),
        duration_seconds: Math.round(state.duration_seconds * 1e6) / 1e6,
      })),
      memory: this.#options.memory.state(),
      disks: [...this.#options.disks()],
      temperature_sensor: choice && {
        sensor: choice.chosen?.id ?? null,
        path: choice.chosen?.path ?? null,
        reason: choice.reason,
        rejected: choice.rejected.map(({ id, path, celsius, reason }) => ({ sensor: id, path, celsius, reason })),
      },
      power: {
        ...power,
        last_undervoltage: lastUndervoltageSeconds === null ? null : isoUtc(nowMs - Math.round((now - lastUndervoltageSeconds) * 1000)),
      },
      clock_events: events.map(({ kind, timestamp_ms, delta_seconds }) => ({ kind, timestamp: isoUtc(timestamp_ms), delta_seconds })),
      storage: { ...store.state(), quarantined: [...store.state().quarantined] },
      ros: this.#options.ros(),
      ports: this.#options.ports(),
      process,
      ops,
      shutdown,
      control_socket: this.#options.controlSocket(),
      config: {
        file: this.#options.configFile,
        loaded: isoUtc(this.#configLoadedMs),
        problem: this.#configProblem,
        restart_needed: [...this.#restartNeeded],
      },
    };
  }
}

function shownThresholds(thresholds: Thresholds): StatusDocument['thresholds'] {
  const shown = (threshold: Threshold | null) => threshold && { warning: threshold.warning, critical: threshold.critical };
  return {
    cpu_percent: shown(thresholds.cpu_percent),
    memory_percent: shown(thresholds.memory_percent),
    disk_percent: shown(thresholds.disk_percent),
    temperature: shown(thresholds.temperature),
  };
}

/** Resource usage of the service itself. */
async function ownProcess(): Promise<StatusDocument['process']> {
  const { system, user } = process.cpuUsage();
  return {
    resident_memory_bytes: process.memoryUsage.rss(),
    cpu_seconds: (user + system) / 1e6,
    open_files: await openFiles(),
  };
}

function openFiles(): Promise<number | null> {
  return new Promise((resolve) => {
    // One of them belongs to the directory listing itself.
    readdir('/proc/self/fd', (error, names) => resolve(error ? null : names.length - 1));
  });
}

type Port = StatusDocument['ports'][number];

/** DDSI-RTPS 2.2, 9.6.1: port parameters of a domain; samples use the odd ports. */
const FIRST_PORT = 7400;
const PORTS_PER_DOMAIN = 250;

/** Ports of this process that are reachable from outside, and their purpose. `domainId` null: not on the ROS 2 graph. */
export function servicePorts(rest: AddressInfo | null, sockets: readonly OpenSocket[], domainId: number | null): Port[] {
  const tcp: Port[] = rest === null ? [] : [{ protocol: 'tcp', address: rest.address, port: rest.port, purpose: 'REST API and dashboard' }];
  const others = sockets.map((socket): Port => {
    if (socket.protocol === 'unix') {
      const purpose = socket.path.endsWith('/control.sock')
        ? 'requests of this machine, such as edge-health nodes forget'
        : 'REST API for programs of this machine';
      return { protocol: 'unix', address: socket.path, port: null, purpose };
    }
    return { ...socket, purpose: purposeOf(domainId === null ? null : socket.port - FIRST_PORT - PORTS_PER_DOMAIN * domainId) };
  });
  return [...tcp, ...others.sort((a, b) => (a.port ?? Infinity) - (b.port ?? Infinity))];
}

/** Purpose of a UDP port by its offset within the domain's range. */
function purposeOf(offset: number | null): string {
  if (offset === null || offset < 0 || offset >= PORTS_PER_DOMAIN) return "ROS 2, sending from a port of the kernel's choice";
  return `ROS 2 ${offset % 2 === 0 ? 'discovery' : 'samples and services'}${offset < 2 ? ', multicast' : ''}`;
}
