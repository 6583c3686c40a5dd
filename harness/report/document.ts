import * as v from 'valibot';
import { CRITERIA, type Judgement, VERDICTS } from '../engine/judgement.ts';
import { seriesSchema } from './document-series.ts';

/** report.json: from here come the types and docs/harness-report.schema.json. Programs that only read reports need the types alone. */

export const REPORT_SCHEMA = 'edge-health-harness-report/1';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const lines = (description: string) => v.pipe(v.array(v.string()), v.description(description));
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.minValue(0), v.description(description));
const instant = (description: string) => v.pipe(v.string(), v.isoTimestamp(), v.description(description));
const verdict = (description: string) => v.pipe(v.picklist(VERDICTS), v.description(description));

const quantity = {
  label: text('What it is.'),
  value: v.pipe(v.nullable(v.number()), v.description('Null: it could not be measured.')),
  unit: text('Such as %, s, MB, h; empty: a count.'),
};

const quantitySchema = v.strictObject({
  ...quantity,
  informative: v.exactOptional(v.pipe(v.literal(true), v.description('Beside the others for information; decides nothing.'))),
});

const tableSchema = v.strictObject({
  title: text('What the rows are.'),
  columns: lines('Headings.'),
  rows: v.pipe(v.array(v.array(v.nullable(v.union([v.string(), v.number()])))), v.description('A cell for each column; null: not known.')),
});

const judgementSchema = v.strictObject({
  criterion: v.pipe(v.picklist(CRITERIA), v.description('Its name; does not change.')),
  title: text('Its name for people.'),
  verdict: verdict('INCOMPLETE: it has not failed, and evidence is missing.'),
  requirement: text('What the specification asks for.'),
  formula: text('How it was computed, to be followed by hand from the evidence.'),
  measured: v.pipe(quantitySchema, v.description('The value that was compared.')),
  limit: v.pipe(
    v.strictObject({
      comparison: v.pipe(v.picklist(['<', '<=', '>', '>=']), v.description('How the measured value has to stand to the limit.')),
      value: v.pipe(v.number(), v.description('The limit.')),
      unit: text('Unit of the limit, of the measured value and of the margin.'),
    }),
    v.description('What it was compared with.'),
  ),
  margin: v.pipe(
    v.nullable(v.number()),
    v.description('How far the measured value is on the right side of the limit; negative: on the wrong side. Null: not measured.'),
  ),
  summary: text('One sentence.'),
  evidence: v.pipe(v.array(quantitySchema), v.description('What the formula was fed with, and what stands beside it.')),
  tables: v.pipe(v.array(tableSchema), v.description('Each restart, gap, episode and the like.')),
  missing: lines('Evidence that is missing; empty unless INCOMPLETE, though a FAIL may lack some too.'),
});

const runSchema = v.strictObject({
  id: text('Of the run, random; of collected files, their period.'),
  origin: v.pipe(
    v.picklist(['watched', 'collected']),
    v.description('watched: by the harness from outside; collected: reconstructed from files of operations.'),
  ),
  begun: instant('Its begin, UTC.'),
  ended: instant('Its end, or how far it had come when the report was made, UTC.'),
  planned_seconds: seconds('How long was to be watched.'),
  watched_seconds: seconds('How long somebody looked, by the boot-time clock.'),
  absent_seconds: seconds('How long nobody looked in between; counts neither for nor against the service.'),
  finished: v.pipe(v.boolean(), v.description('The run came to its planned end.')),
  node_name: text('The node that was watched.'),
  version: v.pipe(v.nullable(v.string()), v.description('Of the service at the end; null: not known.')),
  how: lines('How the service was watched, for people.'),
  machine: v.pipe(
    v.nullable(v.record(v.string(), v.union([v.string(), v.number()]))),
    v.description('The machine on which the harness ran: name and value; null: not known.'),
  ),
  harness: v.pipe(
    v.nullable(
      v.strictObject({
        cpu_percent: v.pipe(v.nullable(v.number()), v.description('Mean CPU of the watcher, of one core; null: not known.')),
        resident_bytes: v.pipe(v.nullable(v.number()), v.description('Most resident memory of the watcher; null: not known.')),
      }),
    ),
    v.description('What watching cost; null: nobody watched.'),
  ),
});

const recordSchema = v.strictObject({
  file: text('Its name, beside this file.'),
  entries: count('Its entries.'),
  bytes: count('Its size.'),
  head: text('Hash of the last entry, which all before it go into: edge-health harness verify compares it.'),
  torn_lines: count('Lines that were cut off when the watcher was killed, and acknowledged afterwards.'),
});

export const reportSchema = v.strictObject({
  schema: v.pipe(v.literal(REPORT_SCHEMA), v.description('Changes when a member is added, taken away or means something else.')),
  verdict: verdict('FAIL: a criterion failed; PASS: all six passed; INCOMPLETE: nothing failed, and evidence is missing.'),
  is_168_hour_verdict: v.pipe(
    v.boolean(),
    v.description('Whether this run can be the verdict of the seven-day test: watched by the harness, and planned for 168 hours or more.'),
  ),
  statement: text('What this report says and what it is not, for people.'),
  made: instant('When the report was made, UTC.'),
  made_by: text('Version of the edge-health that made the report; another one may word it otherwise.'),
  run: v.pipe(runSchema, v.description('The run that is judged.')),
  judgements: v.pipe(v.array(judgementSchema), v.description('The six criteria, in the order of the specification.')),
  notes: lines('What a reader should know besides.'),
  series: v.pipe(seriesSchema, v.description('What the charts of report.html draw.')),
  record: v.pipe(v.nullable(recordSchema), v.description('The record that all this was computed from; null: from collected files.')),
});

type Frozen<T> = T extends readonly (infer E)[] ? readonly Frozen<E>[] : T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;

export type ReportDocument = Frozen<v.InferOutput<typeof reportSchema>>;
export type ReportSeries = ReportDocument['series'];
export type ReportRun = ReportDocument['run'];

/** The compiler's word that a judgement of the engine and one of a report are the same. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;
export const judgementsAreThose: Same<ReportDocument['judgements'][number], Judgement> = true;
