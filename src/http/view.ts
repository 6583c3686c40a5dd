import type { Alert } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader } from '../core/ports.ts';
import type { StatusDocument } from './api/schema.ts';

/** What the REST API asks of the running service. */
export interface ServiceView {
  readonly localNode: string;
  /** Names of every node that was ever seen. */
  nodes(): string[];
  /** The current status of a node, aged to UNKNOWN when it is stale; null: nothing was measured yet. */
  current(node: string): HealthStatus | null;
  openAlerts(): readonly Alert[];
  /** Everything of /status but what the REST server knows itself. */
  status(): Promise<Omit<StatusDocument, 'rest'>>;
  readonly history: HistoryReader;
}
