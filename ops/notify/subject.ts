import type { Alert, Severity } from '../../src/core/alert.ts';

/** How bad something is; null: it is over. Jobs have the levels of alerts: CRITICAL, ERROR for UNKNOWN, WARNING. */
export type Level = Severity | null;

const WEIGHTS: Readonly<Record<Severity, number>> = { WARNING: 1, ERROR: 2, CRITICAL: 3 };

/** 0: over. */
export function weight(level: Level): number {
  return level === null ? 0 : WEIGHTS[level];
}

export function worse<L extends Level>(a: L, b: L): L {
  return weight(b) > weight(a) ? b : a;
}

/** A change of what may be told of: of an alert's episode, or of a job. */
export interface Change {
  /** Of the subject: what flaps under ever new alert ids is still one. */
  readonly key: string;
  readonly source: 'alert' | 'job';
  /** Of the episode. */
  readonly id: string;
  readonly node: string;
  /** The metric, or the job's name. */
  readonly metric: string;
  readonly level: Level;
  /** When, ISO 8601. */
  readonly at: string;
  readonly value: number | null;
  readonly threshold: number | null;
  /** What a job said. */
  readonly lines: readonly string[];
  /** What else makes it news when some of it is new: the findings of health_check. */
  readonly findings: readonly string[];
}

/** What happened to a subject since it was last told of. */
export interface News {
  readonly firstMs: number;
  readonly lastMs: number;
  /** Episodes that began. */
  readonly episodes: number;
  /** The worst level of that time. */
  readonly worst: Level;
  /** Findings that nobody was told of. */
  readonly isNewFinding: boolean;
}

/** One telling, of at most an hour ago. */
export interface Telling {
  readonly ms: number;
  readonly level: Severity;
}

/** Something that can be wrong, how it is, and what was last told of it. */
export interface Subject extends Change {
  /** When the present or last episode began, ISO 8601. */
  readonly since: string;
  /** What receivers believe. */
  readonly told: Level;
  readonly news: News | null;
  readonly tellings: readonly Telling[];
}

/** Alerts of a threshold and of silence can be open at once for one metric. */
function keyOf(node: string, metric: string, severity: Severity): string {
  return `${node}/${metric}${severity === 'ERROR' ? '/silent' : ''}`;
}

/** A change of an alert as the service publishes it. */
export function alertChange(node: string, alert: Alert): Change {
  return {
    key: keyOf(node, alert.metric, alert.severity),
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
/** The job whose warnings count too: what it finds is about the machine, not about the job. */
export const CHECK = 'health_check';

type RunStatus = 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN';

interface Finding {
  readonly level: Severity;
  /** Its status and what it is about. */
  readonly head: string;
  readonly line: string;
}

const LEVELS: Readonly<Record<RunStatus, Level>> = { OK: null, WARNING: 'WARNING', CRITICAL: 'CRITICAL', UNKNOWN: 'ERROR' };

/** What is wrong as a job's lines say, `STATUS  topic: text`, but for the summary of health_check. */
function findingsOf(lines: readonly string[]): Finding[] {
  const found = lines.map((line) => ({ line, parts: /^(WARNING|CRITICAL|UNKNOWN)\s+([^:]+):/.exec(line) }));
  return found.flatMap(({ line, parts }) => {
    const [, status = '', topic = ''] = parts ?? [];
    if (!parts || /^\d+ of \d+ checks?$/.test(topic)) return [];
    return [{ level: LEVELS[status as RunStatus] as Severity, head: `${status} ${topic}`, line }];
  });
}

/** Alerts and failed jobs are told by themselves. */
function isToldAnyway({ head }: Finding): boolean {
  return /^\w+ (alerts$|job )/.test(head);
}

/** A run of a job that ended. A job that ends with WARNING has done its work. */
export function jobChange(
  host: string,
  name: string,
  run: { readonly started: string; readonly status: RunStatus; readonly lines: readonly string[] },
): Change {
  const all = findingsOf(run.lines);
  const findings = name === CHECK ? all.filter((finding) => !isToldAnyway(finding)) : all;
  const checked = all.length === 0 ? LEVELS[run.status] : findings.map(({ level }) => level).reduce<Level>(worse, null);
  const level = name === CHECK ? (run.status === 'OK' ? null : checked) : run.status === 'WARNING' ? null : LEVELS[run.status];
  const said = findings.length > 0 ? findings.map(({ line }) => line) : run.lines.slice(-JOB_LINES);
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
    lines: level === null ? [] : said.slice(0, JOB_LINES),
    findings: name === CHECK ? findings.slice(0, MAX_FINDINGS).map(({ head }) => head) : [],
  };
}

/** A subject after a change; the same object where that tells nothing new. */
export function changed(before: Subject | undefined, change: Change, nowMs: number): Subject | undefined {
  if (!before) {
    if (change.level === null) return undefined; // The end of what nobody heard of.
    return { ...change, since: change.at, told: null, tellings: [], news: begun(null, change, nowMs, true) };
  }
  const isOther = change.id !== before.id;
  if (isOther && change.level === null && before.level !== null) return before; // The end of an older episode.
  const isNewFinding = before.level !== null && change.findings.some((finding) => !before.findings.includes(finding));
  if (!isOther && change.level === before.level && !isNewFinding) {
    return before; // A change that was taken in already, or a job that goes on as before.
  }
  const isEpisode = change.level !== null && (before.level === null || isOther);
  const news = begun(before.news, change, nowMs, isEpisode);
  return {
    ...before,
    ...change,
    lines: change.level === null ? before.lines : change.lines,
    since: isEpisode ? change.at : before.since,
    news: { ...news, isNewFinding: news.isNewFinding || isNewFinding },
  };
}

function begun(news: News | null, { level }: Change, nowMs: number, isEpisode: boolean): News {
  return {
    firstMs: news?.firstMs ?? nowMs,
    lastMs: nowMs,
    episodes: (news?.episodes ?? 0) + (isEpisode ? 1 : 0),
    worst: worse(news?.worst ?? null, level),
    isNewFinding: news?.isNewFinding ?? false,
  };
}
