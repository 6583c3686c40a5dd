import type { Severity } from '../../src/core/alert.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { CHECK, type Change, changed, type Level, type Subject, weight, worse } from './subject.ts';

/** When and what is told: decisions of numbers and states, without a clock or a file. */

export interface Rules {
  readonly minSeverity: Severity;
  readonly failedJobs: boolean;
  readonly groupMs: number;
  /** 0: never. */
  readonly repeatMs: number;
  /** Until when it is quiet at a time; null: it is not. */
  readonly quietUntil: (ms: number) => number | null;
  readonly quietMinSeverity: Severity;
}

/** What is known and what was told, as it is kept. */
export interface Plan {
  readonly subjects: Readonly<Record<string, Subject>>;
  /** When notifications were made: all of the last hour, and the last. */
  readonly toldMs: readonly number[];
}

/** `passed`: it began and ended since the last notification. */
export type LineState = 'raised' | 'changed' | 'resolved' | 'passed';

export interface Line {
  readonly state: LineState;
  /** Of what is over: how bad it was. */
  readonly severity: Severity;
  readonly subject: Subject;
  /** Episodes that this line stands for. */
  readonly episodes: number;
  /** It comes and goes: the next change is told later. */
  readonly isUnsteady: boolean;
}

export interface Decision {
  readonly plan: Plan;
  /** Null: nothing is told now. Without lines: what is open is told again. */
  readonly lines: readonly Line[] | null;
  /** When to decide again if nothing happens until then; null: not before something does. */
  readonly nextMs: number | null;
}

export const EMPTY_PLAN: Plan = { subjects: {}, toldMs: [] };

/** A subject told of so often within an hour comes and goes: it is told when it has kept still, or once an hour. */
export const TELLINGS_AN_HOUR = 4;
export const STEADY_MS = 10 * MINUTE_MS;
/** From so many notifications within an hour on they keep this distance: whatever happens, an hour has at most 32. */
export const NOTIFICATIONS_AN_HOUR = 20;
export const DISTANCE_MS = 5 * MINUTE_MS;
/** Of which those that are over are forgotten first. The service itself keeps at most 1,024 open alerts. */
export const MAX_SUBJECTS = 2048;

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

/** Subjects of alerts that are open as far as is known. */
export function openAlerts({ subjects }: Plan): Subject[] {
  return Object.values(subjects).filter(({ level, source }) => source === 'alert' && level !== null);
}

/** What was told as open and is, the worst first. */
export function openAsTold({ subjects }: Plan): Subject[] {
  const open = Object.values(subjects).filter(({ level, told }) => level !== null && told !== null);
  return open.sort((a, b) => weight(b.level) - weight(a.level) || (a.since < b.since ? -1 : 1));
}

/** After the rules changed: what is open and was not told is judged anew. */
export function reconsidered(plan: Plan, nowMs: number): Plan {
  const subjects = Object.fromEntries(
    Object.entries(plan.subjects).map(([key, subject]) => {
      if (subject.level === null || subject.told !== null || subject.news) return [key, subject];
      const news = { firstMs: nowMs, lastMs: nowMs, episodes: 1, worst: subject.level, isNewFinding: false };
      return [key, { ...subject, news }];
    }),
  );
  return { ...plan, subjects };
}

export function decide(given: Plan, rules: Rules, nowMs: number): Decision {
  const plan = upTo(given, nowMs);
  const quietUntilMs = rules.quietUntil(nowMs);
  const held = (level: Level): boolean => quietUntilMs !== null && weight(level) < weight(rules.quietMinSeverity);
  const earliestMs = earliest(plan, nowMs);
  let nextMs: number | null = null;
  const next = (ms: number): void => {
    nextMs = Math.min(nextMs ?? Number.POSITIVE_INFINITY, Math.max(ms, earliestMs));
  };

  const subjects: Record<string, Subject> = {};
  const lines: Line[] = [];
  let isDue = false;
  let isOther = false;
  for (const [key, subject] of Object.entries(plan.subjects)) {
    const line = lineOf(subject, rules, nowMs);
    const kept = line ? subject : withoutNews(subject, nowMs);
    if (kept) subjects[key] = kept;
    if (kept !== subject) isOther = true;
    if (!line || !subject.news) continue;
    if (held(line.severity)) {
      next(quietUntilMs as number);
      continue;
    }
    const steadyMs = unsteadyUntil(subject, line, nowMs);
    const dueMs = Math.max(subject.news.firstMs + rules.groupMs, steadyMs ?? 0);
    if (dueMs <= nowMs) isDue = true;
    else next(dueMs);
    // What is still being gathered goes along with what is due; what comes and goes waits.
    if (steadyMs === null || steadyMs <= nowMs) lines.push(line);
  }

  const current = isOther ? { ...plan, subjects } : plan;
  const open = openAsTold(current)
    .map(({ level }) => level)
    .reduce(worse, null);
  const lastMs = plan.toldMs.at(-1);
  const repeatsMs = rules.repeatMs > 0 && open !== null && lastMs !== undefined ? lastMs + rules.repeatMs : null;
  const isRepeat = repeatsMs !== null && repeatsMs <= nowMs && !held(open);
  if (nowMs >= earliestMs && (isDue || isRepeat)) return tell(current, rules, lines, nowMs);
  if (isDue) next(earliestMs);
  if (repeatsMs !== null) next(held(open) ? Math.max(repeatsMs, quietUntilMs as number) : repeatsMs);
  return { plan: current, lines: null, nextMs };
}

function tell(plan: Plan, rules: Rules, lines: readonly Line[], nowMs: number): Decision {
  const subjects: Record<string, Subject> = { ...plan.subjects };
  for (const { severity, subject } of lines) {
    subjects[subject.key] = {
      ...subject,
      told: visible(subject, subject.level, rules),
      news: null,
      tellings: [...subject.tellings, { ms: nowMs, level: severity }].slice(-TELLINGS_AN_HOUR),
    };
  }
  const after = { subjects, toldMs: [...plan.toldMs.filter((ms) => ms > nowMs - HOUR_MS), nowMs] };
  // What waits (quiet hours, unsteady subjects, the next repetition) still has its time.
  return { plan: after, lines: lines.toSorted(byWeight), nextMs: decide(after, rules, nowMs).nextMs };
}

function byWeight(a: Line, b: Line): number {
  const isOver = ({ state }: Line): number => (state === 'resolved' || state === 'passed' ? 1 : 0);
  return isOver(a) - isOver(b) || weight(b.severity) - weight(a.severity);
}

/** Null: as far as the rules go nothing is wrong. */
function visible({ metric, source }: Subject, level: Level, { failedJobs, minSeverity }: Rules): Level {
  if (source === 'job' && metric !== CHECK) return failedJobs ? level : null;
  if (source === 'job' && !failedJobs) return null;
  return weight(level) >= weight(minSeverity) ? level : null;
}

/** What there is to tell of a subject with news; null: nothing. */
function lineOf(subject: Subject, rules: Rules, nowMs: number): Line | null {
  const { level, news, tellings, told } = subject;
  if (!news) return null;
  const shown = visible(subject, level, rules);
  const worst = visible(subject, news.worst, rules);
  const line = (state: LineState, severity: Severity): Line => ({
    state,
    severity,
    subject,
    episodes: news.episodes,
    isUnsteady: tellings.filter(({ ms }) => ms > nowMs - HOUR_MS).length >= TELLINGS_AN_HOUR - 1,
  });
  if (told === null) {
    if (shown !== null) return line('raised', shown);
    return worst === null ? null : line('passed', worst);
  }
  // Below min_severity it is eased, and no longer watched; the end is told of what was told as open.
  if (shown === null) return level === null ? line('resolved', worse(told, worst ?? told)) : line('changed', level);
  if (shown !== told || weight(worst) > weight(told) || news.episodes > 0 || news.isNewFinding) return line('changed', shown);
  return null;
}

/** Null: the subject is steady enough to be told of. What is worse than all that was told does not wait. */
function unsteadyUntil({ news, tellings }: Subject, { severity, state }: Line, nowMs: number): number | null {
  const recent = tellings.filter(({ ms }) => ms > nowMs - HOUR_MS);
  const last = recent.at(-1);
  if (!news || !last || recent.length < TELLINGS_AN_HOUR) return null;
  const isOpen = state === 'raised' || state === 'changed';
  if (isOpen && recent.every(({ level }) => weight(level) < weight(severity))) return null;
  return Math.min(news.lastMs + STEADY_MS, last.ms + HOUR_MS);
}

/** What is over and told is forgotten once nobody needs to know how often it was told. */
function withoutNews(subject: Subject, nowMs: number): Subject | null {
  const isOver = subject.level === null;
  if (isOver && subject.tellings.every(({ ms }) => ms <= nowMs - HOUR_MS)) return null;
  if (subject.news === null && (!isOver || subject.told === null)) return subject;
  return { ...subject, told: isOver ? null : subject.told, news: null };
}

function earliest({ toldMs }: Plan, nowMs: number): number {
  const recent = toldMs.filter((ms) => ms > nowMs - HOUR_MS);
  return recent.length < NOTIFICATIONS_AN_HOUR ? 0 : (recent.at(-1) as number) + DISTANCE_MS;
}

/** The plan without times that lie ahead: a clock that was set back must not hold anything up until it is there again. */
function upTo(plan: Plan, nowMs: number): Plan {
  const { subjects, toldMs } = plan;
  const ahead = ({ news, tellings }: Subject): boolean => (news?.lastMs ?? 0) > nowMs || tellings.some(({ ms }) => ms > nowMs);
  const clamped = (subject: Subject): Subject => ({
    ...subject,
    news: subject.news && { ...subject.news, firstMs: Math.min(subject.news.firstMs, nowMs), lastMs: Math.min(subject.news.lastMs, nowMs) },
    tellings: subject.tellings.map(({ level, ms }) => ({ level, ms: Math.min(ms, nowMs) })),
  });
  if (!toldMs.some((ms) => ms > nowMs) && !Object.values(subjects).some(ahead)) return plan;
  const entries = Object.entries(subjects).map(([key, subject]) => [key, ahead(subject) ? clamped(subject) : subject]);
  return { subjects: Object.fromEntries(entries), toldMs: toldMs.map((ms) => Math.min(ms, nowMs)) };
}
