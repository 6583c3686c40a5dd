import * as v from 'valibot';
import { about, count, instant, text } from './fields.ts';

/** The members of a report.json that are read; harness/report/ writes it, docs/harness-report.schema.json has all of them. */
export const reportFileSchema = v.object({
  verdict: v.picklist(['PASS', 'FAIL', 'INCOMPLETE']),
  is_168_hour_verdict: v.boolean(),
  statement: v.string(),
  made: instant,
  run: v.object({ node_name: v.string(), begun: instant, ended: instant, origin: v.string() }),
});

/** Reports that are listed: the newest ones. */
export const MAX_REPORTS = 50;

const runningSchema = v.strictObject({
  name: text('Its folder, and the name of its report once the run has ended.'),
  begun: instant,
  planned_seconds: v.pipe(v.nullable(v.number()), about('Length of the run; null: not known.')),
  recorded: v.pipe(v.nullable(instant), about('When its record was last written, once a minute; null: not yet.')),
});

export const reportsSchema = v.strictObject({
  data: v.pipe(
    v.array(
      v.strictObject({
        name: text('Value of the parameter `name`.'),
        verdict: v.picklist(['PASS', 'FAIL', 'INCOMPLETE']),
        is_168_hour_verdict: v.pipe(v.boolean(), about('Whether the harness observed the service for 168 hours.')),
        statement: text('What the verdict means.'),
        node_name: v.string(),
        begun: instant,
        ended: instant,
        made: instant,
        observed: v.pipe(v.boolean(), about('true: by the harness; false: computed by generate_7day_report from collected data.')),
      }),
    ),
    about(`At most ${MAX_REPORTS} reports, the newest first.`),
  ),
  count: count('Number of elements in data.'),
  running: v.pipe(v.nullable(runningSchema), about('The unfinished run of `edge-health harness start`; null: there is none.')),
});

export type ReportsDocument = v.InferOutput<typeof reportsSchema>;
