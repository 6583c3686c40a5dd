import * as v from 'valibot';
import { type Alert, nodeOfAlertId, type Severity } from '../../src/core/alert.ts';

/** How bad a subject is; null: resolved. Jobs use the severities of alerts: CRITICAL, ERROR for UNKNOWN, WARNING. */
export type Level = Severity | null;

const WEIGHTS: Readonly<Record<Severity, number>> = { WARNING: 1, ERROR: 2, CRITICAL: 3 };

/** 0: resolved. */
export function weight(level: Level): number {
  return level === null ? 0 : WEIGHTS[level];
}

export function worse<L extends Level>(a: L, b: L): L {
  return weight(b) > weight(a) ? b : a;
}

const severitySchema = v.picklist(['WARNING', 'ERROR', 'CRITICAL']);
const levelSchema = v.nullable(severitySchema);

const changeSchema = v.object({
  /** Of the subject: all episodes of one metric of one node share it. */
  key: v.string(),
  source: v.picklist(['alert', 'job']),
  /** Of the episode. */
  id: v.string(),
  node: v.string(),
  /** The metric, or the job's name. */
  metric: v.string(),
  level: levelSchema,
  /** ISO 8601. */
  at: v.string(),
  value: v.nullable(v.number()),
  threshold: v.nullable(v.number()),
  /** Output of a job. */
  lines: v.array(v.string()),
  /** Findings of health_check: a new one is an update although the level stays. */
  findings: v.array(v.string()),
});

/** What happened to a subject since its last notification. */
const pendingSchema = v.object({
  firstMs: v.number(),
  /** Episodes that began. */
  episodes: v.number(),
  /** The worst level meanwhile. */
  worst: levelSchema,
  isNewFinding: v.boolean(),
});

export const subjectSchema = v.object({
  ...changeSchema.entries,
  /** When the present or last episode began, ISO 8601. */
  since: v.string(),
  /** The level of the last notification; null: resolved, or none yet. */
  notified: levelSchema,
  pending: v.nullable(pendingSchema),
});

/** A change of an alert's episode, or of a job. */
export type Change = Readonly<v.InferOutput<typeof changeSchema>>;
/** An alert or a job: its state, and what receivers know of it. */
export type Subject = Readonly<v.InferOutput<typeof subjectSchema>>;

export function alertChange(alert: Alert): Change {
  const node = nodeOfAlertId(alert.alert_id);
  return {
    // An ERROR and a threshold alert of one metric can be open at the same time.
    key: `${node}/${alert.metric}${alert.severity === 'ERROR' ? '/error' : ''}`,
    source: 'alert',
    id: alert.alert_id,
    node,
    metric: alert.metric,
    level: alert.resolved ? null : alert.severity,
    at: alert.timestamp,
    value: alert.value,
    threshold: alert.threshold,
    lines: [],
    findings: [],
  };
}

const JOB_LINES = 10;
const MAX_FINDINGS = 64;
/** The job whose warnings are notified as well: its findings are about the machine, not about the job. */
export const CHECK = 'health_check';

type RunStatus = 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN';

interface Finding {
  readonly level: Severity;
  /** Its status and topic. */
  readonly head: string;
  readonly line: string;
}

const LEVELS: Readonly<Record<RunStatus, Level>> = { OK: null, WARNING: 'WARNING', CRITICAL: 'CRITICAL', UNKNOWN: 'ERROR' };

/** The findings in a job's lines, `STATUS  topic: text`, without the summary of health_check. */
function findingsOf(lines: readonly string[]): Finding[] {
  return lines.flatMap((line) => {
    const [, status = '', topic = ''] = /^(WARNING|CRITICAL|UNKNOWN)\s+([^:]+):/.exec(line) ?? [];
    if (status === '' || /^\d+ of \d+ checks?$/.test(topic)) return [];
    return [{ level: LEVELS[status as RunStatus] as Severity, head: `${status} ${topic}`, line }];
  });
}

/** A run of a job that ended. A job that ends with WARNING has done its work. */
export function jobChange(
  host: string,
  name: string,
  run: { readonly started: string; readonly status: RunStatus; readonly lines: readonly string[] },
): Change {
  const all = findingsOf(run.lines);
  // Alerts and failed jobs have notifications of their own.
  const findings = name === CHECK ? all.filter(({ head }) => !/^\w+ (alerts$|job )/.test(head)) : all;
  let level = LEVELS[run.status];
  if (name === CHECK && level !== null && all.length > 0) level = findings.map((finding) => finding.level).reduce<Level>(worse, null);
  else if (name !== CHECK && run.status === 'WARNING') level = null;
  const lines = findings.length > 0 ? findings.map(({ line }) => line) : run.lines.slice(-JOB_LINES);
  return {
    key: `job/${name}`,
    source: 'job',
    id: `job/${name}`,
    node: host,
    metric: name,
    level,
    at: run.started,
    value: null,
    threshold: null,
    lines: level === null ? [] : lines.slice(0, JOB_LINES),
    findings: name === CHECK ? findings.slice(0, MAX_FINDINGS).map(({ head }) => head) : [],
  };
}

/** The subject after a change; the same object if the change is no update. */
export function changed(before: Subject | undefined, change: Change, nowMs: number): Subject | undefined {
  if (!before) {
    if (change.level === null) return undefined;
    const pending = { firstMs: nowMs, episodes: 1, worst: change.level, isNewFinding: false };
    return { ...change, since: change.at, notified: null, pending };
  }
  const isOther = change.id !== before.id;
  if (isOther && change.level === null && before.level !== null) return before; // The end of an older episode.
  const isNewFinding = before.level !== null && change.findings.some((finding) => !before.findings.includes(finding));
  if (!isOther && change.level === before.level && !isNewFinding) return before;
  const isEpisode = change.level !== null && (before.level === null || isOther);
  const {
    episodes,
    firstMs,
    isNewFinding: hadNewFinding,
    worst,
  } = before.pending ?? { firstMs: nowMs, episodes: 0, worst: null, isNewFinding: false };
  return {
    ...before,
    ...change,
    lines: change.level === null ? before.lines : change.lines,
    since: isEpisode ? change.at : before.since,
    pending: {
      firstMs,
      episodes: episodes + (isEpisode ? 1 : 0),
      worst: worse(worst, change.level),
      isNewFinding: hadNewFinding || isNewFinding,
    },
  };
}
