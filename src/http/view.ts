import type { Alert } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader } from '../core/ports.ts';
import type { Thresholds } from '../core/thresholds.ts';
import type { StatusDocument } from './api/schema.ts';

/** What the REST API asks of the running service. */
export interface ServiceView {
  readonly localNode: string;
  /** Names of the nodes that are there: this one first, then those heard lately or expected. */
  nodes(): string[];
  /** Whether anything is known of a node: whether it may be asked for by name. */
  knows(node: string): boolean;
  /** The current status of a node, aged to UNKNOWN when it is stale; null: nothing was measured yet. */
  current(node: string): HealthStatus | null;
  openAlerts(): readonly Alert[];
  /** In force for this machine's own metrics. */
  thresholds(): Thresholds;
  /** Everything of /status but what the REST server knows itself. */
  status(): Promise<Omit<StatusDocument, 'rest'>>;
  readonly history: HistoryReader;
}
