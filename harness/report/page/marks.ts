import { duration } from '../../../dashboard/src/format.ts';
import type { ReportSeries } from '../document.ts';
import { moment } from './axis.ts';

/** Lanes of the lowest chart, from the top. */
export const LANES = ['CRITICAL', 'ERROR', 'WARNING', 'Restarts', 'Absent', 'Clock'] as const;
export type Lane = (typeof LANES)[number];

/** Something that happened: a bar, or a point where `to` is the same as `from`; seconds since the epoch. */
export interface Mark {
  readonly lane: Lane;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const ABSENT: Readonly<Record<string, string>> = {
  off: 'machine off or booting',
  away: 'watcher not running',
  stalled: 'watcher kept from running',
};

/** All that happened, in the order of its begin. */
export function marksOf(series: ReportSeries, end: number): Mark[] {
  const { begun_epoch_seconds: begun } = series;
  const marks: Mark[] = [];
  for (const { alert_id, from, metric, severity, to } of series.alerts) {
    const lane = LANES.find((name) => name === severity) ?? 'ERROR';
    const until = to === null ? 'open at the end' : `for ${duration(to - from)}`;
    marks.push({ lane, from: begun + from, to: begun + (to ?? end), text: `${severity}: ${metric}, ${until} (${alert_id})` });
  }
  for (const { at, cause, detail } of series.restarts)
    marks.push({
      lane: 'Restarts',
      from: begun + at,
      to: begun + at,
      text: `Restart of the service: ${cause}${detail === '' ? '' : `, ${detail}`}`,
    });
  for (const { from, kind, to } of series.absences)
    marks.push({
      lane: 'Absent',
      from: begun + from,
      to: begun + to,
      text: `Not watched for ${duration(to - from)}: ${ABSENT[kind] ?? kind}`,
    });
  for (const { at, seconds } of series.suspends)
    marks.push({ lane: 'Clock', from: begun + at, to: begun + at + seconds, text: `Suspended for ${duration(seconds)}` });
  for (const { at, seconds } of series.clock_steps)
    marks.push({
      lane: 'Clock',
      from: begun + at,
      to: begun + at,
      text: `Clock put ${seconds < 0 ? 'back' : 'forward'} by ${duration(Math.abs(seconds))}`,
    });
  return marks.sort((one, other) => one.from - other.from).map((mark) => ({ ...mark, text: `${mark.text} · ${moment(mark.from)}` }));
}

/** Marks that are at a time, or not further from it than the slack; of one lane, or of all. */
export function marksAt(marks: readonly Mark[], at: number, slack: number, lane: Lane | null): Mark[] {
  return marks.filter((mark) => (lane === null || mark.lane === lane) && mark.from - slack <= at && at <= mark.to + slack);
}
