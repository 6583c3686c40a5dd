import { CHANNEL_METRICS, type Severity } from '../../src/core/alerts/alert.ts';
import { markLookAlike } from '../../src/core/look-alike.ts';
import { printable } from '../../src/core/text.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { isOver, type Line, type LineState } from './plan.ts';
import { CHECK, type Level, type Subject, worse } from './subject.ts';

/** One line of a notification. docs/notification.schema.json describes it. */
export interface MessageAlert {
  readonly state: LineState | 'open';
  readonly source: 'alert' | 'job';
  readonly id: string;
  readonly severity: Severity;
  readonly node: string;
  readonly metric: string;
  readonly value: number | null;
  readonly threshold: number | null;
  readonly unit: string;
  readonly since: string;
  readonly changed: string;
  readonly episodes: number;
  readonly text: string;
  readonly advice: string;
  readonly details: readonly string[];
}

/** A notification in the form that every channel sends. */
export interface Message {
  readonly version: 1;
  readonly id: string;
  readonly created: string;
  readonly kind: 'update' | 'reminder' | 'test';
  readonly host: string;
  readonly status: Severity | 'RESOLVED' | 'TEST';
  readonly summary: string;
  readonly dashboard: string;
  readonly alerts: readonly MessageAlert[];
  /** Number of lines beyond MAX_LINES. */
  readonly omitted: number;
  readonly open: readonly MessageAlert[];
  readonly open_count: number;
  readonly notes: readonly string[];
}

export interface MessageFacts {
  readonly id: string;
  readonly nowMs: number;
  readonly host: string;
  readonly dashboard: string;
}

export const MAX_LINES = 40;
const MAX_DETAILS = 10;
const MAX_CHARACTERS = 300;

interface Metric {
  readonly name: string;
  readonly unit?: string;
  readonly advice: string;
}

const METRICS: Readonly<Record<string, Metric>> = {
  cpu_percent: { name: 'CPU usage', unit: '%', advice: 'Find the processes that use the CPU: systemd-cgtop, or top.' },
  memory_percent: {
    name: 'memory usage',
    unit: '%',
    advice: 'Find the processes that use the memory: systemd-cgtop -m, or ps aux --sort=-rss.',
  },
  disk_percent: { name: 'disk usage', unit: '%', advice: 'Free space: see du -xh --max-depth=2 / and journalctl --disk-usage.' },
  temperature: { name: 'temperature', unit: '°C', advice: 'Check fan, airflow and load; see edge-health sensors.' },
  health_status: { name: 'health status', advice: 'Check that the node runs and reaches the network: ros2 node list.' },
  rest_api: {
    name: 'REST API',
    advice: 'See edge-health status; sudo ss -ltnp shows the program that uses the port.',
  },
  ros_graph: { name: 'ROS 2 graph', advice: 'See edge-health status; sudo ss -lunp shows the programs that use its UDP ports.' },
  name_conflict: {
    name: 'number of machines that publish under the name',
    advice: 'See edge-health nodes for their addresses; give each machine its own node_name.',
  },
  remote_nodes: {
    name: 'number of remote nodes',
    advice: 'See edge-health nodes; edge-health nodes forget --stale removes those that are gone.',
  },
};

const isChannel = (metric: string): boolean => (CHANNEL_METRICS as readonly string[]).includes(metric);

function metricOf(metric: string): Metric {
  return (Object.hasOwn(METRICS, metric) ? METRICS[metric] : undefined) ?? { name: metric, advice: 'See the dashboard.' };
}

const number = (value: number | null): string => String(Math.round((value ?? 0) * 10) / 10);

/** `temperature of robot_1 is 91.2 °C (threshold 85 °C)`, `backup_logs failed: disk: full; free some` */
function factOf(subject: Subject, severity: Severity): string {
  const { lines, metric, source, threshold, value } = subject;
  const node = markLookAlike(subject.node);
  if (source === 'job') {
    const what = metric === CHECK ? metric : `${metric} failed`;
    const first = lines[0]?.replace(/^(WARNING|CRITICAL|UNKNOWN)\s+/, '');
    if (first === undefined) return metric === CHECK ? `${metric} is ${severity}` : what;
    return `${what}: ${first}${metric === CHECK && lines.length > 1 ? ` (and ${lines.length - 1} more)` : ''}`;
  }
  const { name, unit } = metricOf(metric);
  if (severity === 'ERROR') {
    const what = metric === 'health_status' ? `no data from ${node}` : `${name} of ${node} unavailable`;
    return `${what} for ${number(value)} s (allowed ${number(threshold)} s)`;
  }
  const withUnit = (quantity: number | null): string => `${number(quantity)}${unit === undefined ? '' : ` ${unit}`}`;
  return `${name} of ${node} is ${withUnit(value)} (threshold ${withUnit(threshold)})`;
}

function topicOf({ metric, source, ...subject }: Subject, severity: Severity): string {
  if (source === 'job') return metric;
  const node = markLookAlike(subject.node);
  if (severity === 'ERROR' && metric === 'health_status') return `no data from ${node}`;
  return `${metricOf(metric).name} of ${node}${severity === 'ERROR' ? ' (unavailable)' : ''}`;
}

function textOf({ episodes, severity, state, subject }: Line): string {
  const times = episodes > 1 ? `; raised ${episodes} times` : '';
  if (state === 'resolved') return `${topicOf(subject, severity)}: resolved, was ${severity}${times}`;
  if (state === 'passed') return `${topicOf(subject, severity)}: raised and resolved, was ${severity}${times}`;
  const from = state === 'changed' && subject.notified !== null && subject.notified !== severity ? `, was ${subject.notified}` : '';
  return `${factOf(subject, severity)}${from}${times}`;
}

function adviceOf({ metric, source }: Subject, severity: Severity): string {
  if (source === 'job') return `See edge-health ops ${metric}, and journalctl -u edge-health-ops.`;
  if (severity === 'ERROR' && metric !== 'health_status' && !isChannel(metric))
    return 'See edge-health sensors, and the service with edge-health status.';
  return metricOf(metric).advice;
}

function alertOf(line: Line, state: MessageAlert['state'], details: number): MessageAlert {
  const { episodes, severity, subject } = line;
  return {
    state,
    source: subject.source,
    id: printable(subject.id, 600),
    severity,
    node: printable(subject.node, MAX_CHARACTERS),
    metric: printable(subject.metric, MAX_CHARACTERS),
    value: subject.value,
    threshold: subject.threshold,
    unit: subject.source === 'job' ? '' : severity === 'ERROR' ? 's' : (metricOf(subject.metric).unit ?? ''),
    since: subject.since,
    changed: subject.at,
    episodes,
    text: printable(state === 'open' ? factOf(subject, severity) : textOf(line), MAX_CHARACTERS),
    advice: isOver(state) ? '' : printable(adviceOf(subject, severity), MAX_CHARACTERS),
    details: isOver(state) ? [] : subject.lines.slice(0, details).map((text) => printable(text, MAX_CHARACTERS)),
  };
}

/** The time keeps the id unique if the stored number was lost. */
export function messageId(host: string, nowMs: number, number: number | 'test'): string {
  return `${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${nowMs.toString(36)}-${number}`;
}

/** The message for the lines of a decision and the open subjects. */
export function messageOf({ dashboard, host, id, nowMs }: MessageFacts, lines: readonly Line[], open: readonly Subject[]): Message {
  const alerts = lines.slice(0, MAX_LINES).map((line) => alertOf(line, line.state, MAX_DETAILS));
  const stillOpen = open.slice(0, MAX_LINES).map((subject) => {
    const line: Line = { state: 'raised', severity: subject.level as Severity, subject, episodes: 1 };
    return alertOf(line, 'open', lines.length === 0 ? MAX_DETAILS : 0);
  });
  const updates = lines.filter(({ state }) => !isOver(state)).map(({ severity }) => severity);
  const worst = (lines.length === 0 ? open.map(({ level }) => level) : updates).reduce<Level>(worse, null);
  const more = (count: number): string => (count > 1 ? `, and ${count - 1} more` : '');
  const first = alerts[0] ?? stillOpen[0];
  const summary = lines.length > 0 ? `${first?.text}${more(lines.length)}` : `still open: ${first?.text}${more(open.length)}`;
  return {
    version: 1,
    id,
    created: isoUtc(nowMs),
    kind: lines.length > 0 ? 'update' : 'reminder',
    host: printable(host, MAX_CHARACTERS),
    status: worst ?? 'RESOLVED',
    summary: printable(summary, MAX_CHARACTERS),
    dashboard: printable(dashboard, 2000),
    alerts,
    omitted: Math.max(0, lines.length - MAX_LINES),
    open: stillOpen,
    open_count: open.length,
    notes: [],
  };
}

/** What `edge-health ops notify --test` sends. */
export function testMessage(facts: MessageFacts): Message {
  return { ...messageOf(facts, [], []), kind: 'test', status: 'TEST', summary: 'a test of the notifications; nothing is wrong' };
}

/** The subject of an e-mail: host and worst status first. */
export function subjectLine({ host, status, summary }: Message): string {
  // Without the remedy, which follows a semicolon: the text of the message has it.
  return printable(`[${host}] ${status}: ${summary.split('; ')[0]}`, 200);
}

function block(alert: MessageAlert): string[] {
  return [
    `${isOver(alert.state) ? 'RESOLVED' : alert.severity}  ${alert.text}`,
    `    since ${alert.since}${isOver(alert.state) ? `, until ${alert.changed}` : ''}`,
    ...alert.details.map((detail) => `    ${detail}`),
    ...(alert.advice === '' ? [] : [`    ${alert.advice}`]),
  ];
}

/** The whole message as plain text. */
export function plainText(message: Message): string {
  const { alerts, dashboard, id, notes, omitted, open, open_count: count, summary } = message;
  const isReminder = message.kind === 'reminder';
  const listed = new Set(alerts.map((alert) => alert.id));
  const others = isReminder ? open : open.filter((alert) => !listed.has(alert.id));
  const brief = ({ severity, since, text }: MessageAlert): string[] => [`${severity}  ${text}, since ${since}`];
  const paragraphs = [
    alerts.length === 0 ? [summary] : alerts.flatMap(block),
    omitted === 0 ? [] : [`${omitted} more: see the dashboard.`],
    others.length === 0 ? [] : [`Still open (${count} in all):`, ...others.flatMap(isReminder ? block : brief)],
    notes,
    [`Dashboard: ${dashboard}`, `Notification ${id} of ${message.host}, ${message.created}`],
  ];
  const written = paragraphs.filter(({ length }) => length > 0).map((lines) => lines.join('\n'));
  return `${written.join('\n\n')}\n`;
}
