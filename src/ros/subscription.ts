import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { Log } from '../core/ports.ts';
import type { DiscoverySettings } from './graph.ts';

/** Origin of a received message. */
export interface Arrived {
  /** ROS 2 name: `/robot1/health_status`. */
  readonly topic: string;
  /** Identifies the publisher; null: not available from the transport. */
  readonly publisher: string | null;
  /** The publisher's sequence number, from 1; a missing number is a lost message. Null: not available from the transport. */
  readonly sequenceNumber: number | null;
}

/** Receives messages of the ROS 2 graph: one node with subscriptions, without publishers or services. */
export interface GraphSubscription {
  /** Rejects when the transport cannot be used, leaving nothing running. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Topics to subscribe to, fully qualified; null: every topic of the message type. */
export interface SubscribedTopics {
  readonly healthStatus: string | null;
  readonly alerts: string | null;
}

export interface SubscriptionOptions {
  readonly discovery: DiscoverySettings;
  /** Name of its node, in the root namespace. */
  readonly nodeName: string;
  readonly topics: SubscribedTopics;
  /** Receives the messages of all nodes, validated and converted to types of core. */
  readonly listener: {
    onHealthStatus(status: HealthStatus, arrived: Arrived): void;
    onAlert(alert: Alert, arrived: Arrived): void;
  };
  readonly log: Log;
  readonly monotonicSeconds: () => number;
}
