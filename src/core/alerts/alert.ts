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

/** `<node_name>/<metric>/<sortable unique id>`, so that a subscriber to /alerts can tell nodes apart. */
export function alertId(nodeName: string, metric: string, uniqueId: string): string {
  return `${nodeName}/${metric}/${uniqueId}`;
}

/** The node name of an alert id. It may contain slashes (ROS namespaces), and so may the metric of a disk path. */
export function nodeOfAlertId(id: string): string {
  const disk = id.indexOf('/disk:');
  return disk < 0 ? id.split('/').slice(0, -2).join('/') : id.slice(0, disk);
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
