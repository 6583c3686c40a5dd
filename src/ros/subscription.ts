import type { Alert } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { Log } from '../core/ports.ts';
import type { GraphPlace } from './graph.ts';

/** How a message came. */
export interface Arrived {
  /** As the graph names it: `/robot1/health_status`. */
  readonly topic: string;
  /** Tells publishers apart; null: the transport does not tell. */
  readonly publisher: string | null;
  /** What the publisher counts by, from 1 on: a number that is left out was written and never came. Null: the transport does not tell. */
  readonly sequenceNumber: number | null;
}

/** Listening on the ROS 2 graph without taking part in it otherwise: one node with subscriptions, no topic of its own, no service. */
export interface GraphSubscription {
  /** Rejects when this way cannot be gone; nothing is left running then. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Topics to listen to, fully qualified; null: every topic with such messages, whatever its name. */
export interface SubscribedTopics {
  readonly healthStatus: string | null;
  readonly alerts: string | null;
}

export interface SubscriptionOptions {
  readonly place: GraphPlace;
  /** Of its node, in the root namespace. */
  readonly nodeName: string;
  readonly topics: SubscribedTopics;
  /** What arrives, from whatever node, already checked and in the product's own terms. */
  readonly listener: {
    onHealthStatus(status: HealthStatus, arrived: Arrived): void;
    onAlert(alert: Alert, arrived: Arrived): void;
  };
  readonly log: Log;
  readonly monotonicSeconds: () => number;
}
