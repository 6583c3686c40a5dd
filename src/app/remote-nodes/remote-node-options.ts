import type { Config } from '../../config/schema.ts';
import type { Alert } from '../../core/alerts/alert.ts';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log, Mark, Publisher, RecordedAlert } from '../../core/ports.ts';
import type { Clocks } from '../../core/time/time.ts';
import type { Live } from '../live.ts';
import type { LeftNodes } from './left-nodes.ts';

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
    recordHealth(status: HealthStatus, line: string, timestampMs: number, isNewcomer: boolean): Mark | null;
    dropNewcomer(node: string): void;
    readonly alertsNotStored: number;
    recordAlert(alert: Alert): Promise<RecordedAlert>;
    recordRate(node: string, hertz: number, sinceMs: number): void;
  };
  /** Stores over restarts which nodes left. */
  readonly left: Pick<LeftNodes, 'read' | 'write'>;
  /** Publishes remote data to the readers of /events only, never back to the graph. */
  readonly events: Pick<Publisher, 'publishHealth' | 'publishAlert'>;
  /** Publishes alerts that this machine raises about remote nodes, like its own. */
  readonly publishAlerts: (changes: readonly Alert[]) => void;
}

/** State of earlier runs. */
export interface RemoteNodesPast {
  readonly openAlerts: readonly Alert[];
  /** Remote nodes with stored statuses. */
  readonly remoteNodes: readonly KnownNode[];
}
