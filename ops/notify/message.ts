import type { Severity } from '../../src/core/alert.ts';
import { printable } from '../../src/core/text.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { Line, LineState } from './plan.ts';
import { CHECK, type Subject, weight } from './subject.ts';

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

/** A notification as every channel sends it. */
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
  /** Lines beyond MAX_LINES. */
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

const UNITS: Readonly<Record<string, string>> = { cpu_percent: '%', memory_percent: '%', disk_percent: '%', temperature: '°C' };
const NAMES: Readonly<Record<string, string>> = {
  cpu_percent: 'CPU usage',
  memory_percent: 'memory usage',
  disk_percent: 'disk usage',
  temperature: 'temperature',
  health_status: 'health status',
  remote_nodes: 'number of remote nodes',
};
const ADVICE: Readonly<Record<string, string>> = {
  cpu_percent: 'Find the processes that use the CPU: systemd-cgtop, or top.',
  memory_percent: 'Find the processes that use the memory: systemd-cgtop -m, or ps aux --sort=-rss.',
  disk_percent: 'Free space: see du -xh --max-depth=2 / and journalctl --disk-usage.',
  temperature: 'Check fan, airflow and load; see edge-health sensors.',
  health_status: 'Check that the node runs and reaches the network: ros2 node list.',
  remote_nodes: 'See edge-health nodes; edge-health nodes forget --stale removes those that are gone.',
};

const number = (value: number): string => String(Math.round(value * 10) / 10);

/** `temperature of robot_1 is 91.2 °C (threshold 85 °C)`, `backup_logs failed: disk: full; free some` */
function factOf(subject: Subject, severity: Severity): string {
  const { lines, metric, node, source, threshold, value } = subject;
  if (source === 'job') {
    const what = metric === CHECK ? metric : `${metric} failed`;
    const first = lines[0]?.replace(/^(WARNING|CRITICAL|UNKNOWN)\s+/, '');
    if (first === undefined) return metric === CHECK ? `${metric} is ${severity}` : what;
    return `${what}: ${first}${metric === CHECK && lines.length > 1 ? ` (and ${lines.length - 1} more)` : ''}`;
  }
  const name = NAMES[metric] ?? metric;
  if (severity === 'ERROR' && metric === 'health_status')
    return `no data from ${node} for ${number(value ?? 0)} s (allowed ${number(threshold ?? 0)} s)`;
  if (severity === 'ERROR') return `${name} of ${node} unavailable for ${number(value ?? 0)} s (allowed ${number(threshold ?? 0)} s)`;
  const unit = UNITS[metric] === undefined ? '' : ` ${UNITS[metric]}`;
  return `${name} of ${node} is ${number(value ?? 0)}${unit} (threshold ${number(threshold ?? 0)}${unit})`;
}

function topicOf({ metric, node, source }: Subject, severity: Severity): string {
  if (source === 'job') return metric;
  if (severity === 'ERROR' && metric === 'health_status') return `no data from ${node}`;
  return `${NAMES[metric] ?? metric} of ${node}${severity === 'ERROR' ? ' (unavailable)' : ''}`;
}

function textOf({ episodes, severity, state, subject }: Line): string {
  const times = episodes > 1 ? `; raised ${episodes} times` : '';
  const from = state === 'changed' && subject.notified !== null && subject.notified !== severity ? `, was ${subject.notified}` : '';
  const texts: Readonly<Record<LineState, string>> = {
    raised: factOf(subject, severity),
    changed: `${factOf(subject, severity)}${from}`,
    resolved: `${topicOf(subject, severity)}: resolved, was ${severity}`,
    passed: `${topicOf(subject, severity)}: raised and resolved, was ${severity}`,
  };
  return `${texts[state]}${times}`;
}

function adviceOf({ metric, source }: Subject, severity: Severity): string {
  if (source === 'job') return `See edge-health ops ${metric}, and journalctl -u edge-health-ops.`;
  if (severity === 'ERROR' && metric !== 'health_status') return 'See edge-health sensors, and the service with edge-health status.';
  return ADVICE[metric] ?? 'See the dashboard.';
}

function alertOf(line: Line, state: MessageAlert['state'], details: number): MessageAlert {
  const { episodes, severity, subject } = line;
  const isOver = state === 'resolved' || state === 'passed';
  return {
    state,
    source: subject.source,
    id: printable(subject.id, 600),
    severity,
    node: printable(subject.node, MAX_CHARACTERS),
    metric: printable(subject.metric, MAX_CHARACTERS),
    value: subject.value,
    threshold: subject.threshold,
    unit: subject.source === 'job' ? '' : severity === 'ERROR' ? 's' : (UNITS[subject.metric] ?? ''),
    since: subject.since,
    changed: subject.at,
    episodes,
    text: printable(state === 'open' ? factOf(subject, severity) : textOf(line), MAX_CHARACTERS),
    advice: isOver ? '' : printable(adviceOf(subject, severity), MAX_CHARACTERS),
    details: isOver ? [] : subject.lines.slice(0, details).map((text) => printable(text, MAX_CHARACTERS)),
  };
}

/** The time makes the id unique if the disk lost the number. */
export function messageId(host: string, nowMs: number, number: number | 'test'): string {
  return `${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${nowMs.toString(36)}-${number}`;
}

/** The message for the lines of a decision and what is open. */
export function messageOf({ dashboard, host, id, nowMs }: MessageFacts, lines: readonly Line[], open: readonly Subject[]): Message {
  const alerts = lines.slice(0, MAX_LINES).map((line) => alertOf(line, line.state, MAX_DETAILS));
  const stillOpen = open.slice(0, MAX_LINES).map((subject) => {
    const line: Line = { state: 'raised', severity: subject.level as Severity, subject, episodes: 1 };
    return alertOf(line, 'open', lines.length === 0 ? MAX_DETAILS : 0);
  });
  const updates = lines.filter(({ state }) => state === 'raised' || state === 'changed');
  const judged = lines.length === 0 ? open.map(({ level }) => level as Severity) : updates.map(({ severity }) => severity);
  const status = judged.reduce<Severity | 'RESOLVED'>((a, b) => (a === 'RESOLVED' || weight(b) > weight(a) ? b : a), 'RESOLVED');
  const more = (count: number): string => (count > 1 ? `, and ${count - 1} more` : '');
  const first = alerts[0] ?? stillOpen[0];
  const summary = lines.length > 0 ? `${first?.text}${more(lines.length)}` : `still open: ${first?.text}${more(open.length)}`;
  return {
    version: 1,
    id,
    created: isoUtc(nowMs),
    kind: lines.length > 0 ? 'update' : 'reminder',
    host: printable(host, MAX_CHARACTERS),
    status,
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
  return printable(`[${host}] ${status}: ${summary}`, 200);
}

function block(alert: MessageAlert): string[] {
  const word = alert.state === 'resolved' || alert.state === 'passed' ? 'RESOLVED' : alert.severity;
  const isOver = word === 'RESOLVED';
  return [
    `${word}  ${alert.text}`,
    `    since ${alert.since}${isOver ? `, until ${alert.changed}` : ''}`,
    ...alert.details.map((detail) => `    ${detail}`),
    ...(alert.advice === '' ? [] : [`    ${alert.advice}`]),
  ];
}

/** The whole message as plain text. */
export function plainText(message: Message): string {
  const { alerts, dashboard, id, notes, omitted, open, open_count: count, summary } = message;
  const listed = new Set(alerts.map((alert) => alert.id));
  const others = message.kind === 'reminder' ? open : open.filter((alert) => !listed.has(alert.id));
  const parts: string[][] = [];
  if (alerts.length === 0) parts.push([summary]);
  if (alerts.length > 0) parts.push(alerts.flatMap(block));
  if (omitted > 0) parts.push([`${omitted} more: see the dashboard.`]);
  if (others.length > 0)
    parts.push([
      `Still open (${count} in all):`,
      ...others.flatMap(message.kind === 'reminder' ? block : (alert) => [`${alert.severity}  ${alert.text}, since ${alert.since}`]),
    ]);
  if (notes.length > 0) parts.push([...notes]);
  parts.push([`Dashboard: ${dashboard}`, `Notification ${id} of ${message.host}, ${message.created}`]);
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}
