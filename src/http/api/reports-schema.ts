import * as v from 'valibot';
import { count, described, instant, nullable, text } from './fields.ts';

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
  planned_seconds: nullable(v.number(), 'Length of the run; null: not known.'),
  recorded: nullable(instant, 'When its record was last written, once a minute; null: not yet.'),
});

export const reportsSchema = v.strictObject({
  data: described(
    v.array(
      v.strictObject({
        name: text('Value of the parameter `name`.'),
        verdict: v.picklist(['PASS', 'FAIL', 'INCOMPLETE']),
        is_168_hour_verdict: described(v.boolean(), 'Whether the harness observed the service for 168 hours.'),
        statement: text('What the verdict means.'),
        node_name: v.string(),
        begun: instant,
        ended: instant,
        made: instant,
        observed: described(v.boolean(), 'true: by the harness; false: computed by generate_7day_report from collected data.'),
      }),
    ),
    `At most ${MAX_REPORTS} reports, the newest first.`,
  ),
  count: count('Number of elements in data.'),
  running: nullable(runningSchema, 'The unfinished run of `edge-health harness start`; null: there is none.'),
});

export type ReportsDocument = v.InferOutput<typeof reportsSchema>;
