import type { Severity } from '../../../src/core/alerts/alert.ts';
import type { MessageFacts } from '../message.ts';
import type { Line, LineState } from '../plan.ts';
import { jobChange, type Subject } from '../subject.ts';

/** Facts, subjects and lines for tests of messages. */
export const facts: MessageFacts = {
  id: 'robot-7-abc-1',
  nowMs: Date.parse('2026-03-04T05:06:07.089Z'),
  host: 'robot-7',
  dashboard: 'http://robot-7:5000',
};

export function open(level: Severity, node = 'health_monitor', metric = 'temperature'): Subject {
  return {
    key: `${node}/${metric}`,
    source: 'alert',
    id: `${node}/${metric}/01J`,
    node,
    metric,
    level,
    at: '2026-03-04T05:06:00.000Z',
    value: 91.234,
    threshold: 85,
    lines: [],
    findings: [],
    since: '2026-03-04T05:00:00.000Z',
    notified: level,
    pending: null,
  };
}

export function line(state: LineState, severity: Severity, node?: string, metric?: string): Line {
  const isOver = state === 'resolved' || state === 'passed';
  const subject = open(severity, node, metric);
  return { state, severity, subject: { ...subject, level: isOver ? null : severity, notified: null }, episodes: 1 };
}

export function jobLine(name: string, status: 'WARNING' | 'CRITICAL' | 'UNKNOWN', lines: readonly string[]): Line {
  const change = jobChange('robot-7', name, { started: '2026-03-04T05:00:00.000Z', status, failed: status !== 'WARNING', lines });
  const subject: Subject = { ...change, since: change.at, notified: null, pending: null };
  return { state: 'raised', severity: change.level as Severity, subject, episodes: 1 };
}
