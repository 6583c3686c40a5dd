import { formatDuration } from '../../src/core/time/duration.ts';
import type { Table } from '../engine/judgement.ts';
import type { ReportDocument, ReportSeries } from './document.ts';
import { figure, megabytes, moment, momentAt } from './figures.ts';

/** Tables of report.html and report.md in addition to the judgements: the facts of a run, its events and the charts in figures. */

export function runFacts({ made, made_by, run }: ReportDocument): (readonly [name: string, value: string])[] {
  const { begun, ended, finished, harness, machine, monitoring_gap_seconds, observed_seconds, planned_seconds } = run;
  const exact = (seconds: number): string => `${formatDuration(seconds, 'h')} (${figure(seconds, 's')})`;
  return [
    ['Node', run.node_name],
    ['Version of the service', run.version ?? 'unknown'],
    ['Begun', moment(begun)],
    [finished ? 'Ended' : 'Last entry', moment(ended)],
    ['Planned', formatDuration(planned_seconds, 'h')],
    ['Observed', exact(observed_seconds)],
    ['Monitoring gaps', monitoring_gap_seconds === 0 ? 'none' : exact(monitoring_gap_seconds)],
    ['Report written', `${moment(made)}, by version ${made_by}`],
    ...run.how.map((line) => ['Observation', line] as const),
    ...Object.entries(machine ?? {}).map(([name, value]) => [label(name), machineValue(name, value)] as const),
    ...(harness === null
      ? []
      : ([['Usage of the harness', `${figure(harness.cpu_percent, '%')} of one core, ${megabytes(harness.resident_bytes)}`]] as const)),
    ['Run', run.id],
  ];
}

/** Display name of a member of `machine`, such as `memory_bytes`. */
function label(name: string): string {
  const words = name.replace(/_bytes$/, '').replaceAll('_', ' ');
  return words === 'os' || words === 'cpu' ? words.toUpperCase() : words.charAt(0).toUpperCase() + words.slice(1);
}

function machineValue(name: string, value: string | number): string {
  if (typeof value === 'string') return value === '' ? 'unknown' : value;
  return name.endsWith('_bytes') ? megabytes(value) : figure(value, '');
}

/** Lanes of the lowest chart, from the top. */
export const LANES = ['CRITICAL', 'ERROR', 'WARNING', 'Restarts', 'Gaps', 'Clock'] as const;
export type Lane = (typeof LANES)[number];

/** An event, with times in seconds on the run's axis. */
interface RunEvent {
  readonly lane: Lane;
  readonly from: number;
  /** Equal to `from` for a point in time; null if still open at the end. */
  readonly to: number | null;
  readonly what: string;
  /** Empty if there is none. */
  readonly detail: string;
}

const GAP_KINDS: Readonly<Record<string, string>> = {
  off: 'machine off or booting',
  away: 'observer not running',
  stalled: 'observer not scheduled',
};

/** All events that the charts mark, in order of time. */
export function runEvents({ alerts, clock_steps, monitoring_gaps, restarts, suspends }: ReportSeries): RunEvent[] {
  const length = (seconds: number): string => formatDuration(seconds, 'h');
  const event = (lane: Lane, from: number, to: number | null, what: string, detail = ''): RunEvent => ({ lane, from, to, what, detail });
  const events = [
    ...alerts.map(({ alert_id, from, metric, severity, to }) => {
      const lane = LANES.find((name) => name === severity) ?? 'ERROR';
      const lasted = to === null ? 'open at the end' : `for ${length(to - from)}`;
      return event(lane, from, to, severity, `${metric}, ${lasted} (${alert_id})`);
    }),
    ...restarts.map(({ at, cause, detail }) =>
      event('Restarts', at, at, 'Restart of the service', detail === '' ? cause : `${cause}, ${detail}`),
    ),
    ...monitoring_gaps.map(({ from, kind, to }) =>
      event('Gaps', from, to, `Monitoring gap of ${length(to - from)}`, GAP_KINDS[kind] ?? kind),
    ),
    ...suspends.map(({ at, seconds }) => event('Clock', at, at + seconds, `Suspended for ${length(seconds)}`)),
    ...clock_steps.map(({ at, seconds }) =>
      event('Clock', at, at, `Clock set ${seconds < 0 ? 'back' : 'forward'} by ${length(Math.abs(seconds))}`),
    ),
  ];
  return events.sort((one, other) => one.from - other.from);
}

/** A table of the events with their times in UTC, readable without a script. */
export function eventTable({ series }: ReportDocument): Table {
  return {
    title: 'Events',
    columns: ['At', 'After the start', 'What', 'Detail'],
    rows: runEvents(series).map(({ detail, from, what }) => [
      momentAt(series.begun_epoch_seconds + from),
      formatDuration(Math.max(0, from), 'h'),
      what,
      detail,
    ]),
  };
}

const DAY = 86_400;
const PERIOD_SECONDS = [60, 600, 3600, 6 * 3600, DAY, 7 * DAY, 30 * DAY];
/** A table has fewer rows than this. */
const MAX_PERIODS = 25;

const PERIOD_COLUMNS = [
  ['Received, %', 'rate_percent', 2],
  ['Memory of the service, MB', 'memory_megabytes', 2],
  ['CPU of the service, %', 'cpu_percent', 3],
  ['Host CPU, %', 'host_cpu_percent', 1],
  ['Host memory, %', 'host_memory_percent', 1],
  ['Temperature, °C', 'celsius', 1],
] as const;

/** The charts as means over equal periods, for screen readers and for pages without the script; null if there is no data. */
export function periodTable({ series }: ReportDocument): Table | null {
  const last = series.at.at(-1);
  if (last === undefined) return null;
  const length = PERIOD_SECONDS.find((seconds) => last / seconds < MAX_PERIODS) ?? 365 * DAY;
  // A point represents the minute that ends at it.
  const periods = Map.groupBy(series.at.keys(), (index) => Math.max(0, Math.ceil((series.at[index] as number) / length) - 1));
  const mean = (column: readonly (number | null)[], indices: readonly number[], digits: number): number | null => {
    const values = indices.map((index) => column[index] ?? null).filter((value) => value !== null);
    if (values.length === 0) return null;
    return Number((values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(digits));
  };
  return {
    title: `The charts in figures: means of ${formatDuration(length, 'h')} each`,
    columns: ['From', ...PERIOD_COLUMNS.map(([title]) => title)],
    rows: [...periods].map(([period, indices]) => [
      momentAt(series.begun_epoch_seconds + period * length),
      ...PERIOD_COLUMNS.map(([, column, digits]) => mean(series[column], indices, digits)),
    ]),
  };
}
