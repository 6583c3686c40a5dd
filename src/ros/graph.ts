import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { ObserveMode } from '../core/observer.ts';
import type { Log } from '../core/ports.ts';
import type { ShutdownHandler, ShutdownProgress } from '../core/shutdown/shutdown.ts';
import type { DiagnosticContext } from './diagnostics.ts';

/** Discovery range, by the names of ROS 2. */
export type DiscoveryRange = 'SUBNET' | 'LOCALHOST' | 'OFF' | 'SYSTEM_DEFAULT';

/** Domain, discovery range and peers: from the configuration, otherwise from ROS 2's environment variables. */
export interface DiscoverySettings {
  /** 0 to 232. */
  readonly domainId: number;
  readonly discoveryRange: DiscoveryRange;
  /** Host names or addresses for discovery by unicast. */
  readonly staticPeers: readonly string[];
}

/** Fully qualified names on the graph, remapping applied: nodes as `/ns/name`, topics as `/ns/health_status`. */
export interface GraphNames {
  /** Absolute; `/`: no namespace. */
  readonly namespace: string;
  /** Names without namespace. */
  readonly nodes: {
    readonly healthMonitor: string;
    readonly thresholdMonitor: string;
    readonly alertPublisher: string;
    readonly safeShutdown: string;
  };
  readonly topics: {
    readonly healthStatus: string;
    readonly alerts: string;
    readonly openAlerts: string;
    readonly shutdownStatus: string;
    readonly diagnostics: string;
  };
  readonly services: {
    /** The shared name, offered by every machine that is not in a namespace: /safe_shutdown. */
    readonly safeShutdown: string;
    /** The name of this machine alone: /<node_name>/safe_shutdown. */
    readonly ownSafeShutdown: string;
  };
}

/** Who sent a message. */
export interface Sender {
  /** GUID prefix of the DDS participant. */
  readonly participant: string;
  /** Address at which the participant is proven; THIS_HOST if it is on this machine. */
  readonly address: string;
  /** Name of the appliance that the participant is; null or undefined: of none. */
  readonly appliance?: string | null;
}

/** An appliance whose statuses are expected when the reception of other nodes starts. Times are monotonic seconds. */
export interface ExpectedAppliance {
  readonly name: string;
  readonly address: string;
  /** Since when it has been on the graph. */
  readonly sinceSeconds: number;
  /** When it vanished from the graph, without leaving in an orderly way; null: it is present. */
  readonly lostSeconds: number | null;
}

export const THIS_HOST = '127.0.0.1';

/**
 * Receives the messages of other nodes on the graph, validated and converted to types of core. `sender` null: the transport cannot
 * identify it.
 */
export interface GraphListener {
  onHealthStatus(status: HealthStatus, sender: Sender | null): void;
  onAlert(alert: Alert, sender: Sender | null): void;
  /** Another monitor with the name of this node is on the graph; called repeatedly while it is. */
  onOwnName?(sender: Sender | null): void;
  /**
   * A participant has no writer of a node's statuses any more. `hasLeft`: the writer was disposed of; otherwise its lease expired.
   * `participant` null: the transport cannot identify it, but the node has left the graph.
   */
  onPublisherGone?(nodeName: string, participant: string | null, hasLeft: boolean): void;
  /**
   * Reception of other nodes was started or stopped. While it is stopped, only the alerts of the observers are received. `appliances`: those
   * on the graph, and those that vanished from it.
   */
  onObserving?(isObserving: boolean, appliances: readonly ExpectedAppliance[]): void;
  /** An appliance is not on the graph any more, whether its statuses were received or not; `hasLeft`: it left in an orderly way. */
  onApplianceGone?(name: string, hasLeft: boolean): void;
  /** Null: /safe_shutdown is not offered. */
  readonly onSafeShutdown: ShutdownHandler | null;
}

/** A read-only ROS parameter of type double, with the texts of its descriptor. */
export interface RosParameter {
  /** At least two names, separated by dots. */
  readonly name: string;
  readonly value: number;
  readonly description: string;
  /** Unit and allowed values. */
  readonly constraints: string;
}

export interface GraphOptions {
  readonly discovery: DiscoverySettings;
  readonly names: GraphNames;
  readonly listener: GraphListener;
  /** `node_name` of the statuses of this process: a received status with it is its own, or a name conflict. */
  readonly localNode: string;
  /** Whether to receive what other nodes publish on any topic .../health_status and .../alerts. */
  readonly observe: ObserveMode;
  /** Current content of /diagnostics in addition to the status. */
  readonly diagnostics: () => DiagnosticContext;
  /** What judges now, in the order of the configuration. */
  readonly parameters: () => readonly RosParameter[];
  /** Period of the health statuses. */
  readonly publishSeconds: number;
  readonly log: Log;
  readonly monotonicSeconds: () => number;
}

/** Serves the safe shutdown alongside a transport that cannot identify callers. */
export interface ShutdownServer {
  /** Never rejects; an error is in `problem`. */
  start(): Promise<void>;
  stop(): void;
  /** Publishes a message of /shutdown_status, as CDR. */
  publish(progress: Buffer): void;
  /** Why the service is not offered; null: it is. */
  readonly problem: string | null;
}

/** A note that other participants offer the shared name of the safe shutdown, too, as every appliance does; null: none does. */
export function sharedShutdownNote({ services }: GraphNames, others: number): string | null {
  if (others === 0) return null;
  const offer = others === 1 ? 'another machine on the graph offers' : `${others} other machines on the graph offer`;
  return `${offer} ${services.safeShutdown} too, and one call may reach several; call ${services.ownSafeShutdown} instead`;
}

/** KEEP_LAST of /health_status, /alerts and /diagnostics (contract). */
export const DEPTH = 10;
/** KEEP_LAST of every published topic. */
export const TOPIC_DEPTH: Readonly<Record<keyof GraphNames['topics'], number>> = {
  healthStatus: DEPTH,
  alerts: DEPTH,
  /** Each list replaces the previous one. */
  openAlerts: 1,
  /** More than the steps of a procedure with 64 units and 64 hooks, so that a late joiner gets all of them. */
  shutdownStatus: 200,
  diagnostics: DEPTH,
};

/**
 * Deadline and liveliness lease that are offered for /health_status, in seconds and whole milliseconds. A deadline of two periods
 * tolerates one lost or late status. The lease is longer, so that the loss of a robot can be told from a late status.
 */
export function healthQos(publishSeconds: number): { readonly deadlineSeconds: number; readonly livelinessLeaseSeconds: number } {
  const periods = (count: number): number => Math.ceil(count * publishSeconds * 1000) / 1000;
  return { deadlineSeconds: Math.max(1, periods(2)), livelinessLeaseSeconds: Math.max(5, periods(3)) };
}

/** A transport to the ROS 2 graph. Messages published before `start` or after `stop` are dropped. */
export interface RosTransport {
  publishHealth(status: HealthStatus): void;
  publishAlert(alert: Alert): void;
  /** The open alerts published by this node, at a time in ISO 8601. */
  publishOpenAlerts(alerts: readonly Alert[], timestamp: string): void;
  publishShutdown(progress: ShutdownProgress): void;
  /** Rejects when the transport cannot be used, leaving nothing running. If only its ports are in use, it resolves and joins later. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** For /status. */
  details(): RosDetails;
  /** Why this node, or its safe shutdown service, is not on the graph, which is retried; null: it is. */
  readonly joinProblem: string | null;
  /** Whether other nodes are received now. */
  readonly isObserving: boolean;
  /** Names of the appliances that observe remote nodes; the first one publishes alerts about them. Empty: not known yet, or none. */
  observers(): readonly string[];
}

export interface RosDetails {
  /** How many other participants (embedded) or nodes (rclnodejs) are on the graph; null: not known. */
  readonly peers: number | null;
  /** Matched subscribers of /health_status; null: not known. */
  readonly subscribers: number | null;
  /** Datagrams or messages refused since the start. */
  readonly refused: number;
  /** A current problem, such as another monitor with the same name; null: none. */
  readonly problem: string | null;
  /** What users of this graph should know although nothing is wrong; null: nothing. */
  readonly note: string | null;
}
