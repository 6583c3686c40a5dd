import type { Handler } from '../context.ts';
import { sendBody } from '../context.ts';
import { Problem } from '../problem.ts';
import { REPORT_HEADERS } from '../security.ts';
import type { ReportFormat } from '../view.ts';

const CONTENT_TYPES: Readonly<Record<ReportFormat, string>> = {
  html: 'text/html; charset=utf-8',
  json: 'application/json',
  markdown: 'text/markdown; charset=utf-8',
  junit: 'application/xml; charset=utf-8',
};

/** GET /reports: the reliability reports; with `name`, one of them as a page or in another format. */
export const reports: Handler = async (context) => {
  const { query, response, view } = context;
  const name = query['name'] as string | undefined;
  if (name === undefined) {
    if (query['format'] !== undefined)
      throw new Problem('invalid_parameter', 'format needs name', { parameter: 'format', allowed: 'together with name' });
    return sendBody(context, 'application/json', JSON.stringify(await answered(view.reports())));
  }
  const format = (query['format'] as ReportFormat | undefined) ?? 'html';
  const content = await answered(view.report(name, format));
  if (content === 'missing')
    throw new Problem('unknown_report', `there is no report "${name}"; /reports lists them`, { parameter: 'name' });
  for (const [header, value] of Object.entries(REPORT_HEADERS)) response.setHeader(header, value);
  return sendBody(context, CONTENT_TYPES[format], content);
};

/** A hanging disk must affect only the reports. */
async function answered<T>(work: Promise<T | null>): Promise<T> {
  const result = await work;
  if (result === null) throw new Problem('reports_unavailable', 'the folder of the reports does not respond; try again later');
  return result;
}
