import type { Alert } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { ObserveMode } from '../core/observer.ts';
import type { Log, Publisher } from '../core/ports.ts';
import type { ShutdownHandler } from '../core/shutdown.ts';
import type { DiagnosticContext } from './diagnostics.ts';

/** How far discovery reaches, as ROS 2 names it. */
export type DiscoveryRange = 'SUBNET' | 'LOCALHOST' | 'OFF' | 'SYSTEM_DEFAULT';

/** Where in the ROS 2 world this process is: from the configuration, else from ROS 2's own environment variables. */
export interface GraphPlace {
  /** 0 to 232. */
  readonly domainId: number;
  readonly discoveryRange: DiscoveryRange;
  /** Host names or addresses that discovery asks by unicast. */
  readonly staticPeers: readonly string[];
}

/** Fully qualified names on the graph, remapping applied: nodes as `/ns/name`, topics as `/ns/health_status`. */
export interface GraphNames {
  /** Absolute, `/` when there is none. */
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
    readonly shutdownStatus: string;
    readonly diagnostics: string;
  };
  readonly services: {
    /** Offered by every machine that is not in a namespace: /safe_shutdown. */
    readonly safeShutdown: string;
    /** The machine's own: /<node_name>/safe_shutdown. */
    readonly ownSafeShutdown: string;
  };
}

/** What arrives from other nodes on the graph, already checked and in the product's own terms. */
export interface GraphListener {
  onHealthStatus(status: HealthStatus): void;
  onAlert(alert: Alert): void;
  /** A node, by the `node_name` of its statuses, left the graph in an orderly way. Where a transport cannot tell, it is not called. */
  onNodeLeft?(nodeName: string): void;
  /** Other nodes are received from now on, or no longer. `appliances`: those that are on the graph. */
  onObserving?(isObserving: boolean, appliances: readonly string[]): void;
  /** Null: /safe_shutdown is not offered. */
  readonly onSafeShutdown: ShutdownHandler | null;
}

export interface GraphOptions {
  readonly place: GraphPlace;
  readonly names: GraphNames;
  readonly listener: GraphListener;
  /** `node_name` of the statuses of this process: what arrives under it is its own, or a conflict of names. */
  readonly localNode: string;
  /** Whether to receive what other nodes publish on any topic .../health_status and .../alerts. */
  readonly observe: ObserveMode;
  /** What /diagnostics says beyond the status, as it is now. */
  readonly diagnostics: () => DiagnosticContext;
  readonly log: Log;
  readonly monotonicSeconds: () => number;
}

/** Serves the safe shutdown beside a transport that cannot tell who calls. */
export interface ShutdownServer {
  /** Never rejects: what is in the way is `problem`. */
  start(): Promise<void>;
  stop(): void;
  /** Why the service is not offered; null: it is. */
  readonly problem: string | null;
}

/** What is wrong while other participants offer the shared name of the safe shutdown, too; null: none does. */
export function sharedShutdownProblem({ services }: GraphNames, others: number): string | null {
  if (others === 0) return null;
  const offer = others === 1 ? 'another machine on the graph offers' : `${others} other machines on the graph offer`;
  return `${offer} ${services.safeShutdown} too, and one call may reach several; call ${services.ownSafeShutdown} instead`;
}

/** KEEP_LAST of /health_status, /alerts and /diagnostics (contract). */
export const DEPTH = 10;
/** Of /shutdown_status: more than a procedure with 64 units and as many hooks has steps, so that a late joiner gets all of it. */
export const SHUTDOWN_DEPTH = 200;

/** A way to take part in the ROS 2 graph. What is published before `start` or after `stop` is dropped. */
export interface RosTransport extends Publisher {
  /** Rejects when this way cannot be gone; nothing is left running then. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** For /status. */
  details(): RosDetails;
  /** Whether other nodes are received now. */
  readonly isObserving: boolean;
  /** Who receives all others, the first of which publishes alerts about them; null: not known. */
  observers(): readonly string[] | null;
}

export interface RosDetails {
  /** How many other participants (embedded) or nodes (rclnodejs) are on the graph; null: not known. */
  readonly peers: number | null;
  /** Matched subscribers of /health_status; null: not known. */
  readonly subscribers: number | null;
  /** Datagrams or messages that were refused since the start. */
  readonly refused: number;
  /** What is wrong just now, such as another monitor with the same name; null: nothing. */
  readonly problem: string | null;
}
