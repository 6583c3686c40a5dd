import { median } from '../../../src/core/statistics/quantile.ts';
import type { ReportSeries } from '../document.ts';
import { momentAt } from '../figures.ts';
import { type Lane, runEvents } from '../tables.ts';
import { COLUMNS, type Column, type Range } from './panels.ts';

/** The series and the events of a report on the time axis that all charts share: seconds since the epoch. */

export interface Columns {
  readonly times: readonly number[];
  readonly values: Readonly<Record<Column, readonly (number | null)[]>>;
}

/** Points that are further apart than this many usual steps have a gap between them, across which no line is drawn. */
const GAP_STEPS = 2.5;

/** Columns from the start of the run to its end, with an empty point at both ends and in each gap. */
export function columnsOf(series: ReportSeries, end: number): Columns {
  const { at, begun_epoch_seconds: begun } = series;
  const step = usualStep(at);
  const times: number[] = [];
  /** For each point, its index in the series; -1 if the point is empty. */
  const indices: number[] = [];
  const add = (time: number, index: number): void => {
    times.push(begun + time);
    indices.push(index);
  };
  let before = 0;
  at.forEach((time, index) => {
    if (index === 0 && time > 0) add(0, -1);
    else if (index > 0 && time - before > GAP_STEPS * step) add(before + step / 2, -1);
    add(time, index);
    before = time;
  });
  if (at.length === 0) add(0, -1);
  if (end > before) add(end, -1);
  const values = {} as Record<Column, (number | null)[]>;
  for (const name of COLUMNS) values[name] = indices.map((index) => series[name][index] ?? null);
  return { times, values };
}

function usualStep(at: readonly number[]): number {
  return at.length < 2 ? 60 : median(at.slice(1).map((time, index) => time - (at[index] as number)));
}

/** End of the axis, after all drawn items, in seconds since the start of the run. */
export function endOf({ alerts, at, monitoring_gaps, restarts }: ReportSeries): number {
  let end = Math.max(at.at(-1) ?? 0, 60);
  for (const { to } of monitoring_gaps) end = Math.max(end, to);
  for (const { from, to } of alerts) end = Math.max(end, to ?? from);
  for (const restart of restarts) end = Math.max(end, restart.at);
  return end;
}

/** An event: a bar, or a point if `to` equals `from`. */
export interface Mark {
  readonly lane: Lane;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** All events, by time. */
export function marksOf(series: ReportSeries, end: number): Mark[] {
  const begun = series.begun_epoch_seconds;
  return runEvents(series).map(({ detail, from, lane, to, what }) => ({
    lane,
    from: begun + from,
    to: begun + (to ?? end),
    text: `${what}${detail === '' ? '' : `: ${detail}`} · ${momentAt(begun + from)}`,
  }));
}

/** Marks at a time, or at most `slack` away from it. */
export function marksAt(marks: readonly Mark[], at: number, slack: number): Mark[] {
  return marks.filter((mark) => mark.from - slack <= at && at <= mark.to + slack);
}

const pad = (value: number): string => String(value).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Label of the axis in UTC, for labels that are `step` seconds apart: the day at midnight, otherwise the time. */
export function timeLabel(at: number, step: number): string {
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return '';
  const isMidnight = at % 86_400 === 0;
  if (step >= 86_400 || isMidnight) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return step < 60 ? `${time}:${pad(date.getUTCSeconds())}` : time;
}

/** Moves a range of the axis into the run and extends it to at least a minute. */
export function clamped([from, to]: Range, [first, last]: Range): Range {
  const length = Math.min(Math.max(to - from, 60), last - first);
  const start = Math.min(Math.max(from, first), last - length);
  return [start, start + length];
}
