/** Gaps in the collected rows and in the samples that the service has stored. */
import type { CoverageEvidence, CoverageGap } from '../../harness/engine/evidence.ts';
import { type StatusDocument, statusDocumentSchema } from '../../src/client/documents.ts';
import { storedTimes } from '../../src/client/history.ts';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { isoUtc, roundToMilliseconds } from '../../src/core/time/time.ts';
import type { Period } from './period.ts';
import { type ClockEvent, NEAR_SECONDS, type PlacedRow } from './timeline.ts';

/** Gaps longer than this are listed. */
const LISTED_SECONDS = { rows: NEAR_SECONDS, samples: 60 };
/** Shorter gaps at the ends of the readable range are not counted. */
const SEAM_MS = 1000;
/** The service may hold samples in memory for this long before they can be read. */
const SETTLED_MS = 5000;
const OFF = 'the machine was off';

/** The suspends and clock steps that explain part of a gap. */
function excuses(events: readonly ClockEvent[]): string {
  return events
    .filter(({ kind, seconds }) => kind === 'suspend' || seconds > 0)
    .map(({ kind, seconds }) => (kind === 'suspend' ? `suspended for ${seconds} s` : `the clock was set forward by ${seconds} s`))
    .join(', ');
}

/**
 * Gaps between rows with a response. If nothing was collected before the period, they start with the first row, because the time before it
 * is unknown. Times are on the boot-time clock, so that only suspends need an explanation.
 */
export function rowGaps(
  rows: readonly PlacedRow[],
  { fromMs, toMs }: Period,
  hasEarlier: boolean,
  events: readonly ClockEvent[],
): CoverageEvidence {
  const last = rows.at(-1) as PlacedRow;
  const firstAt = rows[0]?.at ?? 0;
  const isFromBegin = hasEarlier || firstAt <= NEAR_SECONDS;
  const points = rows.flatMap(({ answered, at, ms }, row) => (answered ? [{ at, ms, row }] : []));
  const count = points.length;
  const begin = isFromBegin ? { at: 0, ms: fromMs } : { at: firstAt, ms: rows[0]?.ms ?? fromMs };
  points.unshift({ ...begin, row: 0 });
  points.push({ at: last.at + Math.max(0, toMs - last.ms) / 1000, ms: Math.max(toMs, last.ms), row: rows.length - 1 });
  const gaps: CoverageGap[] = [];
  let longestSeconds = 0;
  for (const [i, to] of points.entries()) {
    const from = points[i - 1];
    if (!from) continue;
    const between = events.filter(({ row }) => row > from.row && row <= to.row);
    const suspended = between.reduce((sum, { kind, seconds }) => sum + (kind === 'suspend' ? seconds : 0), 0);
    const seconds = Math.max(0, roundToMilliseconds(to.at - from.at - suspended));
    longestSeconds = Math.max(longestSeconds, seconds);
    if (Math.max(seconds, (to.ms - from.ms) / 1000) <= LISTED_SECONDS.rows) continue;
    const back = between.filter(({ kind, seconds: step }) => kind === 'step' && step < 0);
    const remarks = [
      ...(between.some(({ kind }) => kind === 'off') ? [OFF] : []),
      ...back.map(({ seconds: step }) => `the clock was set back by ${-step} s`),
    ];
    gaps.push({ from: isoUtc(from.ms), to: isoUtc(to.ms), seconds, excused: excuses(between), remark: remarks.join(', ') });
  }
  const unscannedSeconds = isFromBegin ? 0 : (points[1]?.at ?? firstAt);
  const end = points.at(-1)?.at ?? 0;
  return { count, covered: isFromBegin ? 1 : 1 - firstAt / Math.max(1, end), gaps, longestSeconds, unscannedSeconds };
}

export interface StoredSamples {
  readonly gaps: CoverageEvidence | null;
  /** Why the samples could not be read, or null. */
  readonly problem: string | null;
}

/** Gaps between the samples that the service has stored. Nothing is known about the time before its oldest sample. */
export async function storedGaps(
  rest: RestClient,
  node: string,
  { fromMs, toMs }: Period,
  { events, nowMs, signal }: { readonly events: readonly ClockEvent[]; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<StoredSamples> {
  try {
    const { nodes, storage } = await rest.json<StatusDocument>('/status', { signal, schema: statusDocumentSchema });
    const local = nodes.find((of) => of.local)?.node_name;
    if (local !== node) return { gaps: null, problem: `the service at ${rest.base} is ${local}, not ${node}` };
    const oldestMs = Date.parse(storage.oldest_sample ?? '');
    const beginMs = Number.isNaN(oldestMs) ? fromMs : Math.min(toMs, Math.max(fromMs, oldestMs));
    const endMs = Math.max(beginMs, Math.min(toMs, nowMs - SETTLED_MS));
    const isFromBegin = beginMs <= fromMs + SEAM_MS;
    let count = 0;
    let lastMs = fromMs;
    let unscannedSeconds = 0;
    let longestSeconds = 0;
    const gaps: CoverageGap[] = [];
    const add = (ms: number): void => {
      const seconds = (ms - lastMs) / 1000;
      if (count === 0 && !isFromBegin) unscannedSeconds = unexplained(lastMs, ms, events).seconds;
      else if (seconds <= LISTED_SECONDS.samples) longestSeconds = Math.max(longestSeconds, seconds);
      else {
        const gap = unexplained(lastMs, ms, events);
        longestSeconds = Math.max(longestSeconds, gap.seconds);
        gaps.push(gap);
      }
      lastMs = ms;
    };
    for await (const ms of storedTimes(rest, { node, fromMs: beginMs, toMs: endMs, signal })) {
      if (ms > lastMs || count === 0) add(ms);
      count += 1;
    }
    add(endMs);
    // Time that occurred twice, because the clock was set back, has samples of one pass that may hide a gap in the other.
    const twice = events.reduce((sum, { kind, seconds }) => sum + (kind === 'step' ? Math.max(0, -seconds) : 0), 0);
    unscannedSeconds = Math.max(unscannedSeconds, twice, (toMs - endMs) / 1000);
    const unread = (isFromBegin ? 0 : beginMs - fromMs) + (toMs - endMs);
    return { gaps: { count, covered: Math.max(0, 1 - unread / (toMs - fromMs)), gaps, longestSeconds, unscannedSeconds }, problem: null };
  } catch (error) {
    if (!(error instanceof ServiceUnreachable || error instanceof ServiceRefused)) throw error;
    return { gaps: null, problem: `no response from the service: ${error.message}` };
  }
}

/** The part of a gap between two time stamps that its suspends and forward clock steps do not explain. */
function unexplained(from: number, to: number, events: readonly ClockEvent[]): CoverageGap {
  const between = events.filter((event) => missingMs(event, from, to) > 0);
  const wasOff = events.some(({ earliest, kind, latest }) => kind === 'off' && earliest < to && latest > from);
  const missing = between.reduce((sum, event) => sum + missingMs(event, from, to), 0);
  return {
    from: isoUtc(from),
    to: isoUtc(to),
    seconds: Math.max(0, to - from - missing) / 1000,
    excused: excuses(between),
    remark: wasOff ? OFF : '',
  };
}

/**
 * How much of the time between two stamps an event removed. No sample is taken during the event. If the event fits within the bounds as a
 * whole, all of it counts; otherwise only the part that lies between the bounds in any case. Zero or less means nothing.
 */
function missingMs({ earliest, latest, seconds }: ClockEvent, from: number, to: number): number {
  const all = seconds * 1000;
  if (Math.min(to, latest) - Math.max(from, earliest - all) >= all) return all;
  return Math.min(to, earliest) - Math.max(from, latest - all);
}
