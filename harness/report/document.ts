import * as v from 'valibot';
import { CRITERIA, type Judgement, VERDICTS } from '../engine/judgement.ts';

/**
 * Schema of report.json, from which its types and docs/harness-report.schema.json are generated. Programs that only read
 * reports import the types.
 */

export const REPORT_SCHEMA = 'edge-health-harness-report/1';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const lines = (description: string) => v.pipe(v.array(v.string()), v.description(description));
const number = (description: string) => v.pipe(v.number(), v.description(description));
const nullableNumber = (description: string) => v.pipe(v.nullable(v.number()), v.description(description));
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.minValue(0), v.description(description));
const timestamp = (description: string) => v.pipe(v.string(), v.isoTimestamp(), v.description(description));
const verdict = (description: string) => v.pipe(v.picklist(VERDICTS), v.description(description));
/** Times of the series are seconds on the run's axis. */
const at = (description: string) => number(`${description}, in seconds since the start of the run.`);
const column = (description: string) =>
  v.pipe(v.array(v.nullable(v.number())), v.description(`${description}; one value for each element of at, null: unknown.`));
const list = <T extends v.ObjectEntries>(members: T, description: string) =>
  v.pipe(v.array(v.strictObject(members)), v.description(description));

const quantity = {
  label: text('Name of the quantity.'),
  value: nullableNumber('Null: could not be measured.'),
  unit: text('Unit, such as %, s, MB or h; empty: a count.'),
};

const quantitySchema = v.strictObject({
  ...quantity,
  informative: v.exactOptional(v.pipe(v.literal(true), v.description('For information only; not used in the judgement.'))),
});

const tableSchema = v.strictObject({
  title: text('What the rows are.'),
  columns: lines('Column headings.'),
  rows: v.pipe(
    v.array(v.array(v.nullable(v.union([v.string(), v.number()])))),
    v.description('Rows with one cell per column; null: unknown.'),
  ),
});

const judgementSchema = v.strictObject({
  criterion: v.pipe(v.picklist(CRITERIA), v.description('Stable name of the criterion.')),
  title: text('Display name.'),
  verdict: verdict('INCOMPLETE: not failed, but evidence is missing.'),
  requirement: text('Requirement of the specification.'),
  formula: text('Formula by which the measured value can be computed from the evidence.'),
  measured: v.pipe(quantitySchema, v.description('The value that was compared with the limit.')),
  limit: v.pipe(
    v.strictObject({
      comparison: v.pipe(v.picklist(['<', '<=', '>', '>=']), v.description('How the measured value must compare with the limit.')),
      value: number('The limit.'),
      unit: text('Unit of the limit, of the measured value and of the margin.'),
    }),
    v.description('The limit.'),
  ),
  margin: nullableNumber('Distance of the measured value from the limit; negative: on the wrong side. Null: not measured.'),
  summary: text('One sentence.'),
  evidence: v.pipe(v.array(quantitySchema), v.description('Inputs of the formula, and further quantities for information.')),
  tables: v.pipe(v.array(tableSchema), v.description('Single restarts, gaps, alert episodes and the like.')),
  missing: lines('Missing evidence; empty unless INCOMPLETE, but a FAIL may lack evidence too.'),
});

const runSchema = v.strictObject({
  id: text('Random ID of the run; for collected files, their period.'),
  origin: v.pipe(
    v.picklist(['observed', 'collected']),
    v.description('observed: by the harness, from outside; collected: reconstructed from files of maintenance jobs.'),
  ),
  begun: timestamp('Start, UTC.'),
  ended: timestamp('End, or the time of the last entry when the report was written, UTC.'),
  planned_seconds: seconds('Planned time of observation.'),
  observed_seconds: seconds('Time of observation, by the boot-time clock.'),
  monitoring_gap_seconds: seconds('Time of the monitoring gaps; counts neither for nor against the service.'),
  finished: v.pipe(v.boolean(), v.description('The run reached its planned end.')),
  node_name: text('The observed node.'),
  version: v.pipe(v.nullable(v.string()), v.description('Version of the service at the end; null: unknown.')),
  how: lines('How the service was observed, for display.'),
  machine: v.pipe(
    v.nullable(v.record(v.string(), v.union([v.string(), v.number()]))),
    v.description('The machine of the harness: name and value; null: unknown.'),
  ),
  harness: v.pipe(
    v.nullable(
      v.strictObject({
        cpu_percent: nullableNumber('Mean CPU usage of the observer, of one core; null: unknown.'),
        resident_bytes: nullableNumber('Peak resident memory of the observer; null: unknown.'),
      }),
    ),
    v.description('Resource usage of the observer; null: no observer ran.'),
  ),
});

const seriesSchema = v.strictObject({
  begun_epoch_seconds: number('Start of the axis, in seconds since 1970 UTC.'),
  at: v.pipe(
    v.array(v.number()),
    v.description('Time of each point in seconds since the start, by the boot-time clock: it neither steps nor stops in a suspend.'),
  ),
  rate_percent: column('Received of expected statuses in percent'),
  memory_megabytes: column('Resident memory of the service in MB (1,000,000 bytes)'),
  host_memory_percent: column("Memory usage of the service's machine in percent"),
  cpu_percent: column('CPU usage of the service in percent of one core'),
  host_cpu_percent: column("CPU usage of the service's machine in percent"),
  celsius: column("Temperature of the service's machine in degrees Celsius"),
  memory_medians: list(
    { at: at('Middle of the five minutes'), megabytes: number('Median.') },
    'The five-minute medians that Stability was judged by.',
  ),
  memory_trend: list(
    {
      from: at('Start of the line'),
      to: at('End of the line'),
      megabytes_from: number('Value at the start.'),
      megabytes_to: number('Value at the end.'),
    },
    'One line through the medians of each run of the service, all with the Theil–Sen slope; empty without enough medians.',
  ),
  alerts: list(
    {
      from: at('When the severity began'),
      to: nullableNumber('When it ended, in seconds since the start of the run; null: open at the end.'),
      severity: text('WARNING, ERROR or CRITICAL.'),
      metric: text('The metric of the alert.'),
      alert_id: text('ID of the episode.'),
    },
    'Alert episodes, one element for each severity an episode had.',
  ),
  restarts: list(
    { at: at('When the service was available again'), cause: text('Cause of the end.'), detail: text('Details; may be empty.') },
    'Restarts of the service.',
  ),
  monitoring_gaps: list(
    {
      from: at('Start'),
      to: at('End'),
      kind: text('off: the machine was off or booting; away: the observer was not running; stalled: the observer was not scheduled.'),
    },
    'Monitoring gaps: times without observation.',
  ),
  suspends: list({ at: at('Start'), seconds: number('Duration.') }, 'Suspends of the machine.'),
  clock_steps: list(
    { at: at('When it was detected'), seconds: number('Positive: the clock was set forward.') },
    'Steps of the wall clock.',
  ),
});

const recordSchema = v.strictObject({
  file: text('Name of the record, in the same folder.'),
  entries: count('Number of entries.'),
  bytes: count('Size.'),
  head: text('Hash of the last entry, which covers all before it; checked by edge-health harness verify.'),
  torn_lines: count('Lines truncated by SIGKILL or a power cut, and acknowledged afterwards.'),
});

export const reportSchema = v.strictObject({
  schema: v.pipe(v.literal(REPORT_SCHEMA), v.description('Changes when a member is added, removed or changes its meaning.')),
  verdict: verdict('FAIL: a criterion failed; PASS: all six passed; INCOMPLETE: none failed, but evidence is missing.'),
  is_168_hour_verdict: v.pipe(
    v.boolean(),
    v.description('Whether this run can be the verdict of the seven-day test: observed by the harness, and planned for 168 hours or more.'),
  ),
  statement: text('What this report is, for display.'),
  made: timestamp('When the report was written, UTC.'),
  made_by: text('Version of edge-health that wrote the report; other versions may word it differently.'),
  run: v.pipe(runSchema, v.description('The judged run.')),
  judgements: v.pipe(v.array(judgementSchema), v.description('The six criteria, in the order of the specification.')),
  notes: lines('Further information for the reader.'),
  series: v.pipe(seriesSchema, v.description('Data of the charts in report.html.')),
  record: v.pipe(v.nullable(recordSchema), v.description('The record that the report was computed from; null: collected files.')),
});

type Frozen<T> = T extends readonly (infer E)[] ? readonly Frozen<E>[] : T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;

export type ReportDocument = Frozen<v.InferOutput<typeof reportSchema>>;
export type ReportSeries = ReportDocument['series'];
export type ReportRun = ReportDocument['run'];

/** Compile-time check: a judgement of the engine and one of a report have the same type. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;
export const judgementTypesMatch: Same<ReportDocument['judgements'][number], Judgement> = true;
