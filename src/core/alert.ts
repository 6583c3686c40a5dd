export const SEVERITIES = ['WARNING', 'ERROR', 'CRITICAL'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** One change of an alert episode, field for field as the specification's table 2.2. */
export interface Alert {
  readonly alert_id: string;
  readonly severity: Severity;
  readonly metric: string;
  readonly value: number;
  readonly threshold: number;
  readonly timestamp: string;
  readonly resolved: boolean;
}

/** `<node_name>/<metric>/<sortable unique id>`, so that a subscriber to /alerts can tell nodes apart. */
export function alertId(nodeName: string, metric: string, uniqueId: string): string {
  return `${nodeName}/${metric}/${uniqueId}`;
}

/** The node's name of an alert id; names may hold slashes (ROS namespaces), so the last two parts are taken off. */
export function nodeOfAlertId(id: string): string {
  return id.split('/').slice(0, -2).join('/');
}
