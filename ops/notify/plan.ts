import * as v from 'valibot';
import type { Severity } from '../../src/core/alerts/alert.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time/time.ts';
import { CHECK, type Change, changed, type Level, type Subject, subjectSchema, weight, worse } from './subject.ts';

/** Decides what is notified and when, as a function of states and times, without a clock or file access. */

export interface Rules {
  readonly minSeverity: Severity;
  readonly failedJobs: boolean;
  readonly groupMs: number;
  /** 0 disables repeats. */
  readonly repeatMs: number;
  /** The end of the quiet hours that contain a time, or null if none do. */
  readonly quietUntil: (ms: number) => number | null;
  readonly quietMinSeverity: Severity;
}

export const planSchema = v.object({
  subjects: v.record(v.string(), subjectSchema),
  /** Times of the notifications in the last hour, and of the last one. */
  sentMs: v.array(v.number()),
});

export type Plan = Readonly<v.InferOutput<typeof planSchema>>;

/** `passed`: started and ended since the last notification. */
export type LineState = 'raised' | 'changed' | 'resolved' | 'passed';

export function isOver(state: LineState | 'open'): boolean {
  return state === 'resolved' || state === 'passed';
}

export interface Line {
  readonly state: LineState;
  /** For a resolved subject, its worst severity. */
  readonly severity: Severity;
  readonly subject: Subject;
  /** Episodes that started since the last notification. */
  readonly episodes: number;
}

export interface Decision {
  readonly plan: Plan;
  /** Null: no notification now. Empty: a reminder of the open subjects. */
  readonly lines: readonly Line[] | null;
  /** When to decide again without a further change, or null if that is not needed. */
  readonly nextMs: number | null;
}

export const EMPTY_PLAN: Plan = { subjects: {}, sentMs: [] };

/** After this many notifications within an hour, they are spaced by DISTANCE_MS, which limits an hour to 32. */
export const NOTIFICATIONS_AN_HOUR = 20;
export const DISTANCE_MS = 5 * MINUTE_MS;
/** The service holds at most 1,024 open alerts. Resolved subjects are removed first. */
export const MAX_SUBJECTS = 2048;

/** The plan after a change. */
export function taken(plan: Plan, change: Change, nowMs: number): Plan {
  const before = plan.subjects[change.key];
  const after = changed(before, change, nowMs);
  if (after === before || after === undefined) return plan;
  const subjects: Record<string, Subject> = { ...plan.subjects, [change.key]: after };
  const keys = Object.keys(subjects);
  if (keys.length > MAX_SUBJECTS) {
    const victim = keys.find((key) => subjects[key]?.level === null && key !== change.key) ?? keys.find((key) => key !== change.key);
    if (victim !== undefined) delete subjects[victim];
  }
  return { ...plan, subjects };
}

export function openAlerts({ subjects }: Plan): Subject[] {
  return Object.values(subjects).filter(({ level, source }) => source === 'alert' && level !== null);
}

/** Open subjects that have been notified, the worst first. */
export function openAsNotified({ subjects }: Plan): Subject[] {
  const open = Object.values(subjects).filter(({ level, notified }) => level !== null && notified !== null);
  return open.sort((a, b) => weight(b.level) - weight(a.level) || (a.since < b.since ? -1 : 1));
}

/** After a change of the rules, evaluates open subjects without a notification again. */
export function reconsidered(plan: Plan, nowMs: number): Plan {
  return withSubjects(plan, (subject) => {
    if (subject.level === null || subject.notified !== null || subject.pending) return subject;
    return { ...subject, pending: { firstMs: nowMs, episodes: 1, worst: subject.level, isNewFinding: false } };
  });
}

function withSubjects(plan: Plan, change: (subject: Subject) => Subject): Plan {
  return { ...plan, subjects: Object.fromEntries(Object.entries(plan.subjects).map(([key, subject]) => [key, change(subject)])) };
}

export function decide(given: Plan, rules: Rules, nowMs: number): Decision {
  const plan = withoutFutureTimes(given, nowMs);
  const quietUntilMs = rules.quietUntil(nowMs);
  const isHeld = (level: Level): boolean => quietUntilMs !== null && weight(level) < weight(rules.quietMinSeverity);

  const pending = Object.values(plan.subjects).filter((subject) => subject.pending !== null);
  const current = withoutPending(
    plan,
    pending.filter((subject) => lineOf(subject, rules) === null),
  );
  const all = pending.flatMap((subject) => lineOf(subject, rules) ?? []);
  // Lines whose group time has not passed are sent together with a line that is due.
  const lines = all.filter(({ severity }) => !isHeld(severity));
  const times = lines.map(({ subject }) => (subject.pending?.firstMs ?? nowMs) + rules.groupMs);
  if (quietUntilMs !== null && lines.length < all.length) times.push(quietUntilMs);
  const worstOpen = openAsNotified(current)[0]?.level ?? null;
  const lastMs = plan.sentMs.at(-1);
  if (rules.repeatMs > 0 && worstOpen !== null && lastMs !== undefined)
    times.push(Math.max(lastMs + rules.repeatMs, isHeld(worstOpen) ? (quietUntilMs ?? 0) : 0));

  const nextMs = times.length === 0 ? null : Math.max(earliest(plan, nowMs), Math.min(...times));
  if (nextMs === null || nextMs > nowMs) return { plan: current, lines: null, nextMs };
  const notified = lines.map(({ subject }) => ({ ...subject, notified: visible(subject, subject.level, rules) }));
  const sentMs = [...plan.sentMs.filter((ms) => ms > nowMs - HOUR_MS), nowMs];
  const after = { ...withoutPending(current, notified), sentMs };
  // Lines held by quiet hours, and the next reminder, keep their times.
  return { plan: after, lines: lines.toSorted(byWeight), nextMs: decide(after, rules, nowMs).nextMs };
}

/** Marks the pending updates of these subjects as settled, and removes resolved subjects. */
function withoutPending(plan: Plan, settled: readonly Subject[]): Plan {
  if (settled.length === 0) return plan;
  const subjects: Record<string, Subject> = { ...plan.subjects };
  for (const subject of settled) {
    if (subject.level === null) delete subjects[subject.key];
    else subjects[subject.key] = { ...subject, pending: null };
  }
  return { ...plan, subjects };
}

function byWeight(a: Line, b: Line): number {
  return Number(isOver(a.state)) - Number(isOver(b.state)) || weight(b.severity) - weight(a.severity);
}

/** The level after applying the rules. */
function visible({ metric, source }: Subject, level: Level, { failedJobs, minSeverity }: Rules): Level {
  if (source === 'job' && !failedJobs) return null;
  if (source === 'job' && metric !== CHECK) return level;
  return weight(level) >= weight(minSeverity) ? level : null;
}

/** The line of a subject with a pending update, or null if none is needed. */
function lineOf(subject: Subject, rules: Rules): Line | null {
  const { level, notified, pending } = subject;
  if (!pending) return null;
  const shown = visible(subject, level, rules);
  const worst = visible(subject, pending.worst, rules);
  const line = (state: LineState, severity: Severity): Line => ({ state, severity, subject, episodes: pending.episodes });
  if (notified === null) {
    if (shown !== null) return line('raised', shown);
    return worst === null ? null : line('passed', worst);
  }
  // A fall below min_severity is the last change notified before the resolution.
  if (shown === null) return level === null ? line('resolved', worse(notified, worst ?? notified)) : line('changed', level);
  if (shown !== notified || weight(worst) > weight(notified) || pending.episodes > 0 || pending.isNewFinding) return line('changed', shown);
  return null;
}

function earliest({ sentMs }: Plan, nowMs: number): number {
  const recent = sentMs.filter((ms) => ms > nowMs - HOUR_MS);
  return recent.length < NOTIFICATIONS_AN_HOUR ? 0 : (recent.at(-1) as number) + DISTANCE_MS;
}

/** After a clock was set back, times in the future would delay notifications until the clock reaches them again. */
function withoutFutureTimes(plan: Plan, nowMs: number): Plan {
  const isAhead = ({ pending }: Subject): boolean => pending !== null && pending.firstMs > nowMs;
  if (!plan.sentMs.some((ms) => ms > nowMs) && !Object.values(plan.subjects).some(isAhead)) return plan;
  const { subjects } = withSubjects(plan, (subject) =>
    subject.pending && isAhead(subject) ? { ...subject, pending: { ...subject.pending, firstMs: nowMs } } : subject,
  );
  return { subjects, sentMs: plan.sentMs.map((ms) => Math.min(ms, nowMs)) };
}
