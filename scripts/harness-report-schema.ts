import { toJsonSchema } from '@valibot/to-json-schema';
import { reportSchema } from '../harness/report/document.ts';

/** docs/harness-report.schema.json: JSON Schema of the harness's report.json, for programs that read it. */
export function harnessReportSchema(): object {
  const { $schema: _, ...schema } = toJsonSchema(reportSchema, { target: 'draft-2020-12' });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Reliability report of edge-health',
    description: 'report.json of edge-health harness and of generate_7day_report. The member schema changes with the members.',
    ...schema,
  };
}
