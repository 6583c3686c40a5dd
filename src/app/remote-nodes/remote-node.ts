import type { Config } from '../../config/schema.ts';
import { type Alert, alertId, STALE_METRIC } from '../../core/alerts/alert.ts';
import type { Arrival, KnownNode, NodeWatch } from '../../core/alerts/node-watch.ts';
import { TokenBucket } from '../../core/alerts/rate-limit.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log, Publisher, RecordCursor, RecordedAlert } from '../../core/ports.ts';
import { type Clocks, isoUtc, roundToMilliseconds } from '../../core/time/time.ts';
import type { Live } from '../live.ts';
import type { NodeFile } from './node-file.ts';
import { NodePublisher } from './node-publisher.ts';

/** Rate limit of one node, which may publish at up to 1000 Hz. */
const STATUSES_PER_SECOND = 1200;
/** Rate guaranteed to each node even if others exhaust the limit of all nodes together. */
const ASSURED_PER_SECOND = 20;
/** Rate limit of changes of a node's alerts. */
const CHANGES_PER_SECOND = 0.5;
const CHANGES_BURST = 60;
/** Rate limit of clock jumps; beyond it statuses are not stored, since each jump begins another hour in the database. */
const JUMPS_PER_SECOND = 1 / 60;
const JUMPS_BURST = 5;
/** Rate limit of alerts about one stale node, so that an intermittent node fills neither log nor disk. */
const STALE_ALERTS_PER_SECOND = 1 / 600;
const STALE_ALERTS_BURST = 10;
/** A publisher has missed a status after this many periods without one, and after this time at the earliest. */
const MISSED_PERIODS = 3;
const SHORTEST_SILENCE_SECONDS = 1;
/** A newcomer becomes established after at least this long and ARRIVALS statuses that are APART_SECONDS apart. */
export const ESTABLISHED_SECONDS = 60;
const ARRIVALS = 4;
const APART_SECONDS = 15;
/** The publish rate is recorded when it differs by this factor from the last one, at most once an hour. */
const RATE_FACTOR = 1.2;
const RECORD_RATE_SECONDS = 3600;

/** When a node was seen, monotonic seconds. */
export interface SeenTimes {
  readonly firstSeconds: number;
  readonly lastSeconds: number;
  readonly isEstablished: boolean;
}

/** State, limits and staleness of one remote node. */
export class RemoteNode {
  readonly name: string;
  readonly watch: NodeWatch;
  readonly publisher = new NodePublisher();
  /** From where its last status came; null: not known. */
  address: string | null = null;
  /** The home of its publisher, as in the file. */
  savedHome: string | null = null;
  readonly #statuses = new TokenBucket(STATUSES_PER_SECOND, STATUSES_PER_SECOND);
  readonly #assured = new TokenBucket(ASSURED_PER_SECOND, ASSURED_PER_SECOND);
  readonly changes = new TokenBucket(CHANGES_PER_SECOND, CHANGES_BURST);
  /** The same for other participants that publish alerts about the node. */
  readonly otherChanges = new TokenBucket(CHANGES_PER_SECOND, CHANGES_BURST);
  readonly staleAlertLimit = new TokenBucket(STALE_ALERTS_PER_SECOND, STALE_ALERTS_BURST);
  readonly #jumps = new TokenBucket(JUMPS_PER_SECOND, JUMPS_BURST);
  /** Monotonic seconds; may precede the start of this process. */
  readonly #firstSeenSeconds: number;
  lastSeenSeconds: number;
  /** An established node stays on the list and is stored; the others are newcomers. */
  isEstablished: boolean;
  /** Whether data of an earlier run is stored under this name. */
  wasKnown = false;
  #arrivals = 0;
  #arrivalSeconds = Number.NEGATIVE_INFINITY;
  /** The open alert that the node is stale. */
  staleAlert: Alert | null = null;
  /** Time when the node left the graph, wall-clock milliseconds; null: it is present or disappeared. */
  leftMs: number | null = null;
  /** Whether the node's wrong clock has been logged. */
  isWrongClockLogged = false;
  #rate: { readonly hertz: number; readonly atSeconds: number } | null = null;

  constructor(name: string, watch: NodeWatch, { firstSeconds, isEstablished, lastSeconds }: SeenTimes) {
    this.name = name;
    this.watch = watch;
    this.#firstSeenSeconds = firstSeconds;
    this.lastSeenSeconds = lastSeconds;
    this.isEstablished = isEstablished;
  }

  /** See NodePublisher.restore. */
  restoreAddress(address: string, fromSeconds: number, hasLeft: boolean): void {
    this.publisher.restore(address, fromSeconds, hasLeft);
    this.savedHome = address;
  }

  /** Time from the first to the last arrival. */
  get spanSeconds(): number {
    return this.lastSeenSeconds - this.#firstSeenSeconds;
  }

  /** Whether no status arrived within the allowed time. */
  isStale(nowSeconds: number): boolean {
    return nowSeconds - this.lastSeenSeconds > this.watch.allowedSeconds;
  }

  /** Records an arrival. Returns whether a newcomer now meets the conditions for being established. */
  recordArrival(nowSeconds: number): boolean {
    this.lastSeenSeconds = nowSeconds;
    if (this.isEstablished || nowSeconds - this.#arrivalSeconds < APART_SECONDS) return false;
    this.#arrivalSeconds = nowSeconds;
    this.#arrivals += 1;
    return this.#arrivals >= ARRIVALS && this.spanSeconds >= ESTABLISHED_SECONDS;
  }

  /** Takes one status from the limits and returns whether it passes. `all` is the limit of all nodes together. */
  takeStatus(nowSeconds: number, all: TokenBucket): boolean {
    return this.#statuses.take(nowSeconds) && (all.take(nowSeconds) || this.#assured.take(nowSeconds));
  }

  /** Time without a status after which the publisher has missed one; shorter than `allowedSeconds`. */
  get silentSeconds(): number {
    return Math.min(this.watch.allowedSeconds, Math.max(SHORTEST_SILENCE_SECONDS, MISSED_PERIODS * this.watch.periodSeconds));
  }

  /** Whether a status may be stored; counts a jump. Of the repetitions by a writer with a wrong clock, only the first is stored. */
  mayStore(arrival: Arrival, isInBurst: boolean, nowSeconds: number): boolean {
    if (arrival === 'wrong clock') return !isInBurst;
    return arrival !== 'jump' || this.#jumps.take(nowSeconds);
  }

  /** The publish rate in Hz if it must be recorded now, else null. */
  rateToRecord(nowSeconds: number): number | null {
    if (!this.watch.isPeriodKnown || (this.#rate && nowSeconds - this.#rate.atSeconds < RECORD_RATE_SECONDS)) return null;
    const hertz = roundHertz(this.watch.periodSeconds);
    if (this.#rate && Math.max(hertz / this.#rate.hertz, this.#rate.hertz / hertz) < RATE_FACTOR) return null;
    this.#rate = { hertz, atSeconds: nowSeconds };
    return hertz;
  }
}

/** The alert that a node is stale. */
export function makeStaleAlert({ name, watch }: RemoteNode, staleSeconds: number, uniqueId: string, nowMs: number): Alert {
  return {
    alert_id: alertId(name, STALE_METRIC, uniqueId),
    severity: 'ERROR',
    metric: STALE_METRIC,
    value: roundToMilliseconds(staleSeconds),
    threshold: roundToMilliseconds(watch.allowedSeconds),
    timestamp: isoUtc(nowMs),
    resolved: false,
  };
}

/** Rounds away jitter to a rate that one would configure: whole hertz, or one per whole seconds. */
function roundHertz(periodSeconds: number): number {
  const hertz = 1 / periodSeconds;
  const plain = hertz >= 1 ? Math.round(hertz) : 1 / Math.round(periodSeconds);
  return Math.abs(plain / hertz - 1) < 0.03 ? plain : Number(hertz.toPrecision(3));
}

export interface RemoteNodeRules {
  readonly graceSeconds: number;
  /** Hours without data after which a node is forgotten; 0: never. */
  readonly forgetAfterHours: number;
  /** Nodes that become stale also after leaving in an orderly way. */
  readonly expectedNodes: readonly string[];
}

export function remoteNodeRules({ alerts, ops }: Config): RemoteNodeRules {
  return {
    graceSeconds: alerts.node_grace_seconds,
    forgetAfterHours: alerts.forget_node_after_hours,
    expectedNodes: ops.check.nodes,
  };
}

export interface RemoteNodesOptions {
  readonly localNode: string;
  /** False: nothing is received, so known nodes must not become stale. */
  readonly isOn?: boolean;
  readonly rules: RemoteNodeRules;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly live: Live;
  readonly store: {
    recordHealth(status: HealthStatus, line: string, timestampMs: number, isNewcomer: boolean): RecordCursor | null;
    dropNewcomer(node: string): void;
    readonly alertsNotStored: number;
    recordAlert(alert: Alert): Promise<RecordedAlert>;
    recordRate(node: string, hertz: number, sinceMs: number): void;
  };
  /** See `leftNodes` and `nodeAddresses`. */
  readonly left: Pick<NodeFile<number>, 'read' | 'write'>;
  readonly addresses: Pick<NodeFile<string>, 'read' | 'write'>;
  /** Publishes remote data to the readers of /events only, never back to the graph. */
  readonly events: Pick<Publisher, 'publishHealth' | 'publishAlert'>;
  /** This machine has no network. */
  readonly isOffline: () => boolean;
  /** Name of the observer that publishes alerts about remote nodes; null: not known, or none. */
  readonly firstObserver: () => string | null;
  /** Publishes alerts that this machine raises about remote nodes, like its own. */
  readonly publishAlerts: (changes: readonly Alert[]) => void;
}

/** State of earlier runs. */
export interface RemoteNodesPast {
  readonly openAlerts: readonly Alert[];
  /** Remote nodes with stored statuses. */
  readonly remoteNodes: readonly KnownNode[];
}
