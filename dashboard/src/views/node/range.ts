import { DEFAULT_RANGE, type Range, rangeMs, WINDOWS } from '../../model/windows.ts';

const SHORTEST_MS = 10_000;
/** Longest range that can be selected: one year. */
const LONGEST_MS = 366 * 86_400_000;

/** The range given in the query of the address: `range=1h`, or `from` and `to` in ISO 8601. Anything else is the default. */
export function readRange({ from, range, to }: Readonly<Record<string, string>>): Range {
  const window = WINDOWS.find((name) => name === range);
  if (window) return { kind: 'live', window };
  const [fromMs, toMs] = [Date.parse(from ?? ''), Date.parse(to ?? '')];
  return toMs - fromMs >= SHORTEST_MS && toMs - fromMs <= LONGEST_MS ? { kind: 'fixed', fromMs, toMs } : DEFAULT_RANGE;
}

/** The query of the address for a range. */
export function queryOf(range: Range): Record<string, string> {
  if (range.kind === 'live') return { range: range.window };
  return { from: new Date(range.fromMs).toISOString(), to: new Date(range.toMs).toISOString() };
}

function fixed(fromMs: number, lengthMs: number, nowMs: number): Range {
  const length = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lengthMs));
  const toMs = Math.min(Math.round(fromMs + length), Math.ceil(nowMs / 1000) * 1000);
  return { kind: 'fixed', fromMs: toMs - Math.round(length), toMs };
}

/** Moves a range by a share of its length; a negative share moves it back in time. A range cannot end after now. */
export function shifted(range: Range, share: number, nowMs: number): Range {
  const length = rangeMs(range);
  const fromMs = range.kind === 'live' ? nowMs - length : range.fromMs;
  return fixed(fromMs + share * length, length, nowMs);
}

/** Enlarges (factor above 1) or reduces a range around its middle. */
export function zoomed(range: Range, factor: number, nowMs: number): Range {
  const length = rangeMs(range);
  const fromMs = range.kind === 'live' ? nowMs - length : range.fromMs;
  return fixed(fromMs + (length - length * factor) / 2, length * factor, nowMs);
}

/** A part of the chart that was selected with the pointer. */
export function selected(fromMs: number, toMs: number, nowMs: number): Range {
  return fixed(fromMs, toMs - fromMs, nowMs);
}
