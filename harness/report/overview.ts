import type { Table } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { duration, figure, megabytes, moment, momentAt } from './figures.ts';

/** Name and value of what is known of the run, for people. */
export function runFacts({ made, made_by, run }: ReportDocument): (readonly [name: string, value: string])[] {
  const { absent_seconds, begun, ended, finished, harness, how, id, machine, node_name, planned_seconds, version, watched_seconds } = run;
  return [
    ['Node', node_name],
    ['Version of the service', version ?? 'not known'],
    ['Begun', moment(begun)],
    [finished ? 'Ended' : 'Last heard of', moment(ended)],
    ['Planned', duration(planned_seconds)],
    ['Watched', `${duration(watched_seconds)} (${figure(watched_seconds, 's')})`],
    ['Not watched in between', absent_seconds === 0 ? 'nothing' : `${duration(absent_seconds)} (${figure(absent_seconds, 's')})`],
    ['Report made', `${moment(made)}, by version ${made_by}`],
    ...how.map((line) => ['How it was watched', line] as const),
    ...(machine === null ? [] : Object.entries(machine).map(([name, value]) => [label(name), shown(name, value)] as const)),
    ...(harness === null
      ? []
      : ([['Weight of the harness', `${figure(harness.cpu_percent, '%')} of one core, ${megabytes(harness.resident_bytes)}`]] as const)),
    ['Run', id],
  ];
}

/** Names of the machine's facts as report.json has them: `memory_bytes`. */
function label(name: string): string {
  const words = name.replace(/_bytes$/, '').replaceAll('_', ' ');
  return words === 'os' || words === 'cpu' ? words.toUpperCase() : words.charAt(0).toUpperCase() + words.slice(1);
}

function shown(name: string, value: string | number): string {
  if (typeof value === 'string') return value === '' ? 'not known' : value;
  return name.endsWith('_bytes') ? megabytes(value) : figure(value, '');
}

/** All that the charts mark, in its order: the only place that tells it in UTC without a script. */
export function happened({ series }: ReportDocument): Table {
  const { absences, alerts, begun_epoch_seconds: begun, clock_steps, restarts, suspends } = series;
  const events = [
    ...alerts.map(({ alert_id, from, metric, severity, to }) => ({
      at: from,
      what: `${severity} alert, ${to === null ? 'open at the end' : `for ${duration(to - from)}`}`,
      detail: `${metric} (${alert_id})`,
    })),
    ...restarts.map(({ at, cause, detail }) => ({
      at,
      what: 'the service was started again',
      detail: detail === '' ? cause : `${cause}: ${detail}`,
    })),
    ...absences.map(({ from, kind, to }) => ({
      at: from,
      what: `nobody watched for ${duration(to - from)}`,
      detail: ABSENCES[kind] ?? kind,
    })),
    ...suspends.map(({ at, seconds }) => ({ at, what: `the machine was suspended for ${duration(seconds)}`, detail: '' })),
    ...clock_steps.map(({ at, seconds }) => ({
      at,
      what: `the clock was put ${seconds < 0 ? 'back' : 'forward'} by ${duration(Math.abs(seconds))}`,
      detail: '',
    })),
  ].sort((one, other) => one.at - other.at);
  return {
    title: 'What happened',
    columns: ['At', 'After the begin', 'What', 'Detail'],
    rows: events.map(({ at, detail, what }) => [momentAt(begun, at), duration(Math.max(0, at)), what, detail]),
  };
}

const ABSENCES: Readonly<Record<string, string>> = {
  off: 'the machine was off or booting',
  away: 'the watcher was not running',
  stalled: 'the watcher was kept from running',
};

const DAY = 86_400;
const LENGTHS = [60, 600, 3600, 6 * 3600, DAY, 7 * DAY, 30 * DAY];
const MOST_PERIODS = 31;

/** The charts in figures, a row for each stretch of a handy length: for those who cannot see them, or have them without a script. */
export function periodTable({ series }: ReportDocument): Table | null {
  const last = series.at.at(-1);
  if (last === undefined) return null;
  const length = LENGTHS.find((seconds) => last / seconds <= MOST_PERIODS && last / seconds < 25) ?? 365 * DAY;
  const groups = new Map<number, number[]>();
  series.at.forEach((at, index) => {
    // A point stands for the minute that ends with it.
    const period = Math.max(0, Math.ceil(at / length) - 1);
    const group = groups.get(period);
    if (group) group.push(index);
    else groups.set(period, [index]);
  });
  const mean = (column: readonly (number | null)[], group: readonly number[], digits: number): number | null => {
    const values = group.map((index) => column[index] ?? null).filter((value) => value !== null);
    if (values.length === 0) return null;
    const factor = 10 ** digits;
    return Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * factor) / factor;
  };
  const rows = [...groups].map(([period, group]) => [
    momentAt(series.begun_epoch_seconds, period * length),
    mean(series.rate_percent, group, 2),
    mean(series.memory_megabytes, group, 2),
    mean(series.cpu_percent, group, 3),
    mean(series.host_cpu_percent, group, 1),
    mean(series.host_memory_percent, group, 1),
    mean(series.celsius, group, 1),
  ]);
  return {
    title: `The charts in figures: means of ${duration(length)} each`,
    columns: [
      'From',
      'Received, %',
      'Memory of the service, MB',
      'CPU of the service, %',
      'Host CPU, %',
      'Host memory, %',
      'Temperature, °C',
    ],
    rows,
  };
}
