import * as v from 'valibot';
import { type Alert, nodeOfAlertId, SEVERITIES, type Severity } from '../../src/core/alerts/alert.ts';
import { isoUtc } from '../../src/core/time/time.ts';

/** Severity of a subject; null means resolved. Jobs use the severities of alerts: CRITICAL, ERROR for UNKNOWN, WARNING. */
export type Level = Severity | null;

/** 0 means resolved. SEVERITIES starts with the least severe. */
export function weight(level: Level): number {
  return level === null ? 0 : SEVERITIES.indexOf(level) + 1;
}

export function worse<L extends Level>(a: L, b: L): L {
  return weight(b) > weight(a) ? b : a;
}

const levelSchema = v.nullable(v.picklist(SEVERITIES));

const changeSchema = v.object({
  /** Key of the subject: all episodes of one metric of one node share it. */
  key: v.string(),
  source: v.picklist(['alert', 'job']),
  /** Id of the episode. */
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
  /** Findings of health_check. A new finding is an update even if the level stays the same. */
  findings: v.array(v.string()),
});

export const subjectSchema = v.object({
  ...changeSchema.entries,
  /** Start of the current or last episode, ISO 8601. */
  since: v.string(),
  /** The level of the last notification; null if resolved or not notified yet. */
  notified: levelSchema,
  /** Changes since the last notification. */
  pending: v.nullable(
    v.object({
      firstMs: v.number(),
      /** Number of episodes that started. */
      episodes: v.number(),
      /** The worst level since the last notification. */
      worst: levelSchema,
      isNewFinding: v.boolean(),
    }),
  ),
});

/** A change of an alert's episode, or of a job. */
export type Change = Readonly<v.InferOutput<typeof changeSchema>>;
/** An alert or a job: its state, and the state last notified. */
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

const MAX_LINES = 10;
const MAX_FINDINGS = 64;
/** The only job whose warnings are notified, because its findings are about the machine and not about the job. */
export const CHECK = 'health_check';

const LEVELS = { OK: null, WARNING: 'WARNING', CRITICAL: 'CRITICAL', UNKNOWN: 'ERROR' } as const;

/** The findings in a job's lines, `STATUS  topic: text`, without the summary line of health_check. */
function findingsOf(lines: readonly string[]): { readonly level: Severity; readonly head: string; readonly line: string }[] {
  return lines.flatMap((line) => {
    const [, status, topic] = /^(WARNING|CRITICAL|UNKNOWN)\s+([^:]+):/.exec(line) ?? [];
    if (status === undefined || topic === undefined || /^\d+ of \d+ checks?$/.test(topic)) return [];
    return [{ level: LEVELS[status as 'WARNING' | 'CRITICAL' | 'UNKNOWN'], head: `${status} ${topic}`, line }];
  });
}

/** The change for a run that ended. A job that has done its work is not notified, except for the findings of health_check. */
export function jobChange(
  host: string,
  name: string,
  run: { readonly started: string; readonly status: keyof typeof LEVELS; readonly failed: boolean; readonly lines: readonly string[] },
): Change {
  const all = findingsOf(run.lines);
  // Alerts and failed jobs are notified separately.
  const findings = name === CHECK ? all.filter(({ head }) => !/^\w+ (alerts$|job )/.test(head)) : all;
  let level: Level = LEVELS[run.status];
  if (name === CHECK && level !== null && all.length > 0) level = findings.map((finding) => finding.level).reduce<Level>(worse, null);
  else if (name !== CHECK && !run.failed) level = null;
  const lines = findings.length > 0 ? findings.map(({ line }) => line) : run.lines.slice(-MAX_LINES);
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
    lines: level === null ? [] : lines.slice(0, MAX_LINES),
    findings: name === CHECK ? findings.slice(0, MAX_FINDINGS).map(({ head }) => head) : [],
  };
}

/** After a step of its clock, a node publishes an open alert again with only the time corrected. */
function restamped(given: Subject, { at, threshold, value }: Change): Subject {
  if (at === given.at || value !== given.value || threshold !== given.threshold) return given;
  const since = given.since <= given.at ? Date.parse(given.since) + Date.parse(at) - Date.parse(given.at) : null;
  return { ...given, at, since: since === null ? given.since : isoUtc(since) };
}

/** Returns the subject after a change, or the same object if the change is not an update. */
export function changed(given: Subject | undefined, change: Change, nowMs: number): Subject | undefined {
  const before: Subject = given ?? { ...change, level: null, since: change.at, notified: null, pending: null };
  const isOther = change.id !== before.id;
  if (isOther && change.level === null && before.level !== null) return given; // This is the end of an older episode.
  if (given && change.source === 'alert' && !isOther && change.level === given.level) return restamped(given, change);
  const isNewFinding = before.level !== null && change.findings.some((finding) => !before.findings.includes(finding));
  if (!isOther && change.level === before.level && !isNewFinding) return given;
  const isEpisode = change.level !== null && (before.level === null || isOther);
  const pending = before.pending ?? { firstMs: nowMs, episodes: 0, worst: null, isNewFinding: false };
  return {
    ...before,
    ...change,
    lines: change.level === null ? before.lines : change.lines,
    since: isEpisode ? change.at : before.since,
    pending: {
      firstMs: pending.firstMs,
      episodes: pending.episodes + (isEpisode ? 1 : 0),
      worst: worse(pending.worst, change.level),
      isNewFinding: pending.isNewFinding || isNewFinding,
    },
  };
}
