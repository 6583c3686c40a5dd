import type { Alert, Thresholds } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader } from '../core/ports.ts';
import type { ReportsDocument } from './api/reports-schema.ts';
import type { StatusDocument } from './api/schema.ts';

export type ReportFormat = 'html' | 'json' | 'markdown' | 'junit';

/** Interface of the running service to the REST API. */
export interface ServiceView {
  readonly localNode: string;
  /** Names of the known nodes: the local one first, then the remote nodes seen recently or expected on the graph. */
  nodes(): string[];
  /** Whether a node was ever seen, so that queries may name it. */
  isKnownNode(node: string): boolean;
  /** The current status of a node, UNKNOWN if it is stale; null: no sample yet. */
  current(node: string): HealthStatus | null;
  openAlerts(): readonly Alert[];
  /** The thresholds currently applied to this machine's metrics. */
  thresholds(): Thresholds;
  /** The document of /status without the member that the REST server adds. */
  status(): Promise<Omit<StatusDocument, 'rest'>>;
  readonly history: HistoryReader;
  /** The reliability reports; null: the disk does not respond. */
  reports(): Promise<ReportsDocument | null>;
  /** A file of a report. */
  report(name: string, format: ReportFormat): Promise<Buffer | 'missing' | null>;
}
