import type { ReportSeries } from '../document.ts';

export type Column = 'rate_percent' | 'memory_megabytes' | 'cpu_percent' | 'host_cpu_percent' | 'host_memory_percent' | 'celsius';

/** The columns of a report over seconds since the epoch, ready to be drawn. */
export interface Columns {
  readonly times: readonly number[];
  readonly values: Readonly<Record<Column, readonly (number | null)[]>>;
}

/** Points further apart than this many usual steps have nothing between them: no line may lead over that. */
const GAP_STEPS = 2.5;

/** From the begin of the run to its end, with a point of nothing at both and in each gap. */
export function columnsOf(series: ReportSeries, end: number): Columns {
  const { at, begun_epoch_seconds: begun } = series;
  const step = usualStep(at);
  const times: number[] = [];
  /** For each point its place in the series; -1: nothing. */
  const places: number[] = [];
  const add = (time: number, place: number): void => {
    times.push(begun + time);
    places.push(place);
  };
  let before = 0;
  at.forEach((time, place) => {
    if (place === 0 && time > 0) add(0, -1);
    else if (place > 0 && time - before > GAP_STEPS * step) add(before + step / 2, -1);
    add(time, place);
    before = time;
  });
  if (end > before || at.length === 0) add(Math.max(end, before), -1);
  if (at.length === 0) {
    times.unshift(begun);
    places.unshift(-1);
  }
  const column = (name: Column): (number | null)[] => places.map((place) => series[name][place] ?? null);
  const values = {
    rate_percent: column('rate_percent'),
    memory_megabytes: column('memory_megabytes'),
    cpu_percent: column('cpu_percent'),
    host_cpu_percent: column('host_cpu_percent'),
    host_memory_percent: column('host_memory_percent'),
    celsius: column('celsius'),
  };
  return { times, values };
}

function usualStep(at: readonly number[]): number {
  const steps = at.slice(1).map((time, index) => time - (at[index] as number));
  steps.sort((one, other) => one - other);
  return steps[Math.floor(steps.length / 2)] ?? 60;
}

/** Where the axis ends: behind everything that is drawn. */
export function endOf({ absences, alerts, at, restarts }: ReportSeries): number {
  let end = Math.max(at.at(-1) ?? 0, 60);
  for (const { to } of absences) end = Math.max(end, to);
  for (const { from, to } of alerts) end = Math.max(end, to ?? from);
  for (const restart of restarts) end = Math.max(end, restart.at);
  return end;
}
