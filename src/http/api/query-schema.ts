import * as v from 'valibot';
import { CHANNEL_METRICS, NODE_LIMIT_METRIC, OBSERVED_METRICS, SEVERITIES } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import { STEP_VALUES } from '../../core/ports.ts';

/** The paths of the REST API and their query parameters. The validation of queries and /openapi.json are both derived from this table. */

export interface Parameter {
  readonly schema: v.GenericSchema;
  readonly description: string;
  /** The allowed values in words, for the error message. */
  readonly allowed: string;
}

/** The type of a parameter's values in valibot's words, such as `number` or `array`; text is converted to it before the validation. */
export function valueType({ schema }: Parameter): string {
  return 'wrapped' in schema ? (schema.wrapped as v.GenericSchema).type : schema.type;
}

const nodeParameter: Parameter = {
  schema: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  description: 'Name of a monitoring node, which may have left the graph. Default: the node of this machine.',
  allowed: 'the name of a node in /status',
};
const anyNode: Parameter = { ...nodeParameter, description: 'Only this monitoring node.' };
/** ISO 8601 has four digits for the year. A time with a zone offset can lie outside of them in UTC. */
export const EARLIEST_MS = Date.parse('0000-01-01T00:00:00.000Z');
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const instantParameter = (description: string): Parameter => ({
  schema: v.pipe(
    v.string(),
    v.regex(/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/),
    v.check((value) => Date.parse(value) >= EARLIEST_MS && Date.parse(value) <= LATEST_MS && isCalendarDate(value), 'no such date'),
  ),
  description,
  allowed:
    'an ISO 8601 time with zone such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00%2B01:00 (in a URL + must be written %2B), or a date such as 2026-01-31 (UTC)',
});

/** Date.parse() accepts 30 February. The year is reduced to 2000 to 2399, because Date.UTC() takes 0 to 99 as 1900 to 1999. */
function isCalendarDate(value: string): boolean {
  const day = Number(value.slice(8, 10));
  return new Date(Date.UTC(2000 + (Number(value.slice(0, 4)) % 400), Number(value.slice(5, 7)) - 1, day)).getUTCDate() === day;
}

const range: Readonly<Record<string, Parameter>> = {
  from: instantParameter('Start of the range, inclusive.'),
  to: instantParameter('End of the range, exclusive. Default: now.'),
  hours: {
    schema: v.pipe(v.number(), v.finite(), v.gtValue(0), v.maxValue(17_544)),
    description: 'Length of the range in hours, ending at `to`. It cannot be combined with `from`.',
    allowed: 'a number above 0 up to 17544 (two years), not together with from',
  },
};

export const MAX_PAGE = 10_000;
const limitSchema = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE));
const limit: Parameter = {
  schema: limitSchema,
  description: `Maximum number of elements on a page; the Link header has the URL of the next page. Default: ${MAX_PAGE} for JSON, no limit for CSV.`,
  allowed: `a whole number from 1 to ${MAX_PAGE}`,
};
/** The cursor contains an alert id. The id of a remote node's alert has up to 512 characters of up to three bytes each. */
const cursor: Parameter = {
  schema: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,2200}$/)),
  description: 'Continues a listing. The Link header of the previous page contains it.',
  allowed: 'the cursor of a Link header',
};
/** An event id of /events: the cursors of health statuses and of alerts, and a number. */
export const ID = /^([0-9a-z]{1,10})\.([0-9a-z]{1,6})_([0-9a-z]{1,10})\.([0-9a-z]{1,6})_[0-9a-z]{1,10}$/;
const oneOf = (options: readonly string[], description: string, defaultOption?: string): Parameter => ({
  schema: defaultOption === undefined ? v.picklist(options) : v.optional(v.picklist(options), defaultOption),
  description,
  allowed: `one of ${options.join(', ')}`,
});
/** Metrics of alerts. In addition, each path of `disk.paths` has its own metric. */
const ALERT_METRICS = [...METRICS, ...OBSERVED_METRICS, NODE_LIMIT_METRIC, ...CHANNEL_METRICS];
const flag = (description: string): Parameter => ({ schema: v.boolean(), description, allowed: 'true or false' });

export const parameters = {
  '/health': { node: nodeParameter },
  '/health/history': {
    node: nodeParameter,
    ...range,
    step: {
      schema: v.pipe(v.string(), v.regex(/^[1-9]\d{0,4}[smhd]$/)),
      description:
        'One element per step of this length, aligned to UTC; `from` and `to` are widened to whole steps. Default: every sample.',
      allowed: 'a whole number from 1 to 99999 followed by one of s, m, h, d, such as 10s or 1d',
    },
    value: oneOf(STEP_VALUES, 'With `step`: the mean, the lowest or the highest reading of each step.', 'mean'),
    order: oneOf(['asc', 'desc'], 'asc: oldest first; desc: newest first.', 'asc'),
    limit,
    cursor,
  },
  '/health/aggregate': {
    node: nodeParameter,
    ...range,
    by: oneOf(['minute', 'hour', 'day'], 'Also return statistics for each minute, hour or day (UTC).'),
  },
  '/alerts': {
    node: anyNode,
    severity: oneOf(SEVERITIES, 'Only this severity.'),
    metric: {
      schema: v.pipe(v.string(), v.regex(new RegExp(`^(${ALERT_METRICS.join('|')}|disk:/.*)$`))),
      description: 'Only this metric. `disk:/…` is a path of `disk.paths` that cannot be measured, or whose file system is faulty.',
      allowed: `one of ${ALERT_METRICS.join(', ')}, or disk:/… for one path of disk.paths`,
    },
    resolved: flag('true: only resolved alerts; false: only open alerts.'),
    changes: flag('Every change of each alert instead of only the last.'),
    after: {
      schema: v.pipe(v.string(), v.regex(new RegExp(`^0$|${ID.source}`))),
      description:
        'With `changes=true`: only the changes recorded after this cursor, in the order of recording. Each change is returned exactly once, even if a clock is set back. The cursor is the Last-Event-ID header of the previous response, or the id of an event of /events; 0: from the beginning. Of the other parameters, only `node` and `limit` can be used with it.',
      allowed: 'the Last-Event-ID of a response, or 0; together with changes=true, and otherwise only with node and limit',
    },
    ...range,
    limit: {
      ...limit,
      schema: v.optional(limitSchema, 1000),
      description: 'Maximum number of elements on a page; the Link header has the URL of the next page.',
    },
    cursor,
  },
  '/alerts/{alert_id}': {},
  '/status': {},
  '/events': {
    events: {
      schema: v.pipe(v.array(v.picklist(['health', 'alert', 'shutdown'])), v.minLength(1)),
      description: 'Only these kinds of events, separated by commas.',
      allowed: 'a list of health, alert, shutdown',
    },
    node: anyNode,
  },
  '/reports': {
    name: {
      schema: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)),
      description: 'Returns this report instead of the list.',
      allowed: 'the name of a report in /reports',
    },
    format: oneOf(['html', 'json', 'markdown', 'junit'], 'With `name`: the format of the report. Default: html, a page.'),
  },
  '/metrics': {},
  '/snapshot': {},
  '/openapi.json': {},
} as const satisfies Readonly<Record<string, Readonly<Record<string, Parameter>>>>;

export type ApiPath = keyof typeof parameters;
