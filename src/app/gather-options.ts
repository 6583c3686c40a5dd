import type { Config } from '../config/schema.ts';
import type { Alert } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HeardNode } from '../core/node-watch.ts';
import type { Log, Publisher } from '../core/ports.ts';
import type { Clocks } from '../core/time.ts';
import type { LeftNodes } from './left-nodes.ts';
import type { Live } from './live.ts';

export interface GatheringRules {
  readonly graceSeconds: number;
  /** 0: never. */
  readonly forgetAfterHours: number;
  /** Nodes of which an ERROR is raised also when they leave in an orderly way. */
  readonly expectedNodes: readonly string[];
}

export function gatheringRules({ alerts, ops }: Config): GatheringRules {
  return {
    graceSeconds: alerts.node_grace_seconds,
    forgetAfterHours: alerts.forget_node_after_hours,
    expectedNodes: ops.check.nodes,
  };
}

export interface GatheringOptions {
  readonly localNode: string;
  /** False: nothing will come, so that nothing is missed either. */
  readonly isOn?: boolean;
  readonly rules: GatheringRules;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly live: Live;
  readonly store: {
    recordHealth(status: HealthStatus, line: string, timestampMs: number, isNewcomer: boolean): void;
    dropNewcomer(node: string): void;
    readonly alertsNotStored: number;
    recordAlert(alert: Alert): Promise<boolean>;
    recordRate(node: string, hertz: number, sinceMs: number): void;
  };
  /** Keeps over restarts which nodes left. */
  readonly left: Pick<LeftNodes, 'read' | 'write'>;
  /** What was gathered goes to the readers of /events, and never back to where it came from. */
  readonly events: Pick<Publisher, 'publishHealth' | 'publishAlert'>;
  /** Takes changes of the alerts that this machine raises about other nodes: they go everywhere, like its own. */
  readonly publishAlerts: (changes: readonly Alert[]) => void;
}

/** What earlier runs left behind. */
export interface GatheringPast {
  readonly openAlerts: readonly Alert[];
  /** The nodes of which statuses are stored that came from elsewhere. */
  readonly heard: readonly HeardNode[];
}
