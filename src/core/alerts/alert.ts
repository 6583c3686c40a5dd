import type { Metric, Reading } from '../metrics.ts';

export const SEVERITIES = ['WARNING', 'ERROR', 'CRITICAL'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** One change of an alert episode, field for field as in the specification's table 2.2. */
export interface Alert {
  readonly alert_id: string;
  readonly severity: Severity;
  readonly metric: string;
  readonly value: number;
  readonly threshold: number;
  readonly timestamp: string;
  readonly resolved: boolean;
}

/** Metric of the ERROR about a disk path that cannot be measured: `disk:` followed by the path. */
export function diskMetric(path: string): string {
  return `disk:${path}`;
}

/** Whether an alert belongs to a metric; those of disk paths belong to `disk_percent`. */
export function isAbout(alert: Pick<Alert, 'metric'>, metric: string): boolean {
  return alert.metric === metric || (metric === 'disk_percent' && alert.metric.startsWith('disk:'));
}

/** `<node_name>/<metric>/<sortable unique id>`, so that a subscriber to /alerts can distinguish nodes. */
export function alertId(nodeName: string, metric: string, uniqueId: string): string {
  return `${nodeName}/${metric}/${uniqueId}`;
}

/** The node name of an alert id. It may contain slashes (ROS namespaces), and so may the metric of a disk path. */
export function nodeOfAlertId(id: string): string {
  const disk = id.indexOf('/disk:');
  return disk < 0 ? id.split('/').slice(0, -2).join('/') : id.slice(0, disk);
}

/** Metric of the alert about a node whose statuses stopped arriving. */
export const STALE_METRIC = 'health_status';
/** Metric of the alert about a node name under which two machines publish. */
export const NAME_CONFLICT_METRIC = 'name_conflict';
/** Metrics of the alerts that every service raises about the nodes it observes; the nodes themselves do not. */
export const OBSERVED_METRICS: readonly string[] = [STALE_METRIC, NAME_CONFLICT_METRIC];
/** Metric of the alert about the number of nodes that a service stores. */
export const NODE_LIMIT_METRIC = 'remote_nodes';

/**
 * Metrics of the ERRORs about the channels of this node: REST does not listen, or the node is not on the ROS 2 graph although it is
 * configured to be.
 */
export const CHANNEL_METRICS = ['rest_api', 'ros_graph'] as const;
export type ChannelMetric = (typeof CHANNEL_METRICS)[number];

/** Whether an alert is about another node than the one of this service. */
export function isAboutRemoteNode({ alert_id }: Pick<Alert, 'alert_id'>, localNode: string): boolean {
  return nodeOfAlertId(alert_id) !== localNode;
}

/**
 * Who raises and resolves an alert, seen from a service. `thresholds`: its threshold monitor; `reception`: its reception of remote nodes,
 * about this node; `observer`: every service that observes the node, of which one publishes the alert; `other`: another participant,
 * usually the node that the alert is about.
 */
export function raisedBy(alert: Alert, localNode: string): 'thresholds' | 'reception' | 'observer' | 'other' {
  const { metric } = alert;
  if (isAboutRemoteNode(alert, localNode)) return OBSERVED_METRICS.includes(metric) ? 'observer' : 'other';
  return metric === NODE_LIMIT_METRIC || metric === NAME_CONFLICT_METRIC ? 'reception' : 'thresholds';
}

/** Two changes are the same exactly if their keys are equal: a publisher, a file or a page may deliver a change more than once. */
export function changeKey({
  alert_id,
  resolved,
  severity,
  timestamp,
}: Pick<Alert, 'alert_id' | 'resolved' | 'severity' | 'timestamp'>): string {
  return JSON.stringify([alert_id, timestamp, severity, resolved]);
}

export interface Threshold {
  readonly warning: number;
  readonly critical: number;
  /** Delays of this metric, if they differ from those of all. */
  readonly raiseAfterSeconds?: number;
  readonly clearAfterSeconds?: number;
}

/** Null: the metric is not judged. */
export type Thresholds = Readonly<Record<Metric, Threshold | null>>;

/**
 * From best to worst, for every output: a node without data must not hide one that is in danger. The database stores indexes into this
 * list, so a change of it needs another SCHEMA_VERSION.
 */
export const STATUSES = ['OK', 'WARNING', 'UNKNOWN', 'ERROR', 'CRITICAL'] as const;
export type Status = (typeof STATUSES)[number];

/** A threshold is crossed when value ≥ threshold. */
export function statusOfReading(reading: Reading, threshold: Threshold | null): Status {
  if (reading === null) return 'UNKNOWN';
  if (threshold === null) return 'OK';
  if (reading >= threshold.critical) return 'CRITICAL';
  return reading >= threshold.warning ? 'WARNING' : 'OK';
}

/** Compares for sorting. */
export function worstFirst(a: Status, b: Status): number {
  return STATUSES.indexOf(b) - STATUSES.indexOf(a);
}

/** The worst of the statuses; UNKNOWN for none. */
export function worstStatus<S extends Status>(statuses: readonly S[]): S | 'UNKNOWN' {
  return statuses.toSorted(worstFirst)[0] ?? 'UNKNOWN';
}

/**
 * The status of a node or of one metric: the worst of its available values and its open alerts. If no value is available, it is UNKNOWN
 * unless an alert is CRITICAL; its ERRORs are about the very data that is missing.
 */
export function healthStatusOf(values: Iterable<Status>, openAlerts: Iterable<{ readonly severity: Severity }>): Status {
  let worst = -1;
  for (const status of values) if (status !== 'UNKNOWN') worst = Math.max(worst, STATUSES.indexOf(status));
  const isMeasured = worst >= 0;
  for (const { severity } of openAlerts) if (isMeasured || severity === 'CRITICAL') worst = Math.max(worst, STATUSES.indexOf(severity));
  return STATUSES[worst] ?? 'UNKNOWN';
}
