import * as v from 'valibot';
import { SEVERITIES } from '../../core/alert.ts';
import { METRICS } from '../../core/metrics.ts';

/** The paths of the REST API and their query parameters, once. From here come the validation of queries, and /openapi.json. */

/** How a parameter's text is read before its schema judges it. */
export type ParameterKind = 'text' | 'number' | 'boolean' | 'list';

export interface Parameter {
  readonly kind: ParameterKind;
  readonly schema: v.GenericSchema;
  readonly description: string;
  /** In words, for the error message. */
  readonly allowed: string;
}

const nodeParameter: Parameter = {
  kind: 'text',
  schema: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  description: 'A monitoring node, also one that is no longer there; without it the one of this machine.',
  allowed: 'the name of a node, as /status lists them',
};
const anyNode: Parameter = { ...nodeParameter, description: 'Only this monitoring node.' };
/** ISO 8601 has four digits for the year: with its zone a time may lie beyond them. */
export const EARLIEST_MS = Date.parse('0000-01-01T00:00:00.000Z');
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const instantParameter = (description: string): Parameter => ({
  kind: 'text',
  schema: v.pipe(
    v.string(),
    v.regex(/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/),
    v.check((value) => Date.parse(value) >= EARLIEST_MS && Date.parse(value) <= LATEST_MS && isCalendarDate(value), 'no such date'),
  ),
  description,
  allowed:
    'an ISO 8601 time with zone such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00%2B01:00 (in a URL + must be written %2B), or a date such as 2026-01-31 (UTC)',
});

/** 30 February parses in JavaScript; it is no date. */
function isCalendarDate(value: string): boolean {
  const day = Number(value.slice(8, 10));
  return new Date(Date.UTC(2000 + (Number(value.slice(0, 4)) % 400), Number(value.slice(5, 7)) - 1, day)).getUTCDate() === day;
}

const range: Readonly<Record<string, Parameter>> = {
  from: instantParameter('Beginning of the range, inclusive.'),
  to: instantParameter('End of the range, exclusive; without it now.'),
  hours: {
    kind: 'number',
    schema: v.pipe(v.number(), v.finite(), v.gtValue(0), v.maxValue(17_544)),
    description: 'Length of the range in hours, up to `to`; not together with `from`.',
    allowed: 'a number above 0 up to 17544 (two years), not together with from',
  },
};

export const MAX_PAGE = 10_000;
const limitSchema = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE));
const limit: Parameter = {
  kind: 'number',
  schema: limitSchema,
  description: `Elements of a page; the next page is in the Link header. Without it a page of JSON has at most ${MAX_PAGE}, and CSV is the whole range.`,
  allowed: `a whole number from 1 to ${MAX_PAGE}`,
};
/** It holds an alert's id, of other nodes up to 512 characters of up to three bytes. */
const cursor: Parameter = {
  kind: 'text',
  schema: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,2200}$/)),
  description: 'Continues a listing; taken from the Link header of the page before.',
  allowed: 'the cursor of a Link header',
};
/** An id of /events: the places of health statuses and of alerts, and a number. */
export const ID = /^([0-9a-z]{1,10})\.([0-9a-z]{1,6})_([0-9a-z]{1,10})\.([0-9a-z]{1,6})_[0-9a-z]{1,10}$/;
const oneOf = (options: readonly string[], description: string, standard?: string): Parameter => ({
  kind: 'text',
  schema: standard === undefined ? v.picklist(options) : v.optional(v.picklist(options), standard),
  description,
  allowed: `one of ${options.join(', ')}`,
});
/** Of alerts; besides them each path of a disk has one of its own. */
const ALERT_METRICS = [...METRICS, 'health_status', 'remote_nodes'];
const flag = (description: string): Parameter => ({ kind: 'boolean', schema: v.boolean(), description, allowed: 'true or false' });

export const parameters = {
  '/health': { node: nodeParameter },
  '/health/history': {
    node: nodeParameter,
    ...range,
    step: {
      kind: 'text',
      schema: v.pipe(v.string(), v.regex(/^[1-9]\d{0,4}[smhd]$/)),
      description:
        'Averages over steps of this length, aligned to UTC; `from` and `to` are widened to whole steps. Without it every sample.',
      allowed: 'a whole number from 1 to 99999 followed by one of s, m, h, d, such as 10s or 1d',
    },
    order: oneOf(['asc', 'desc'], 'Oldest or newest first.', 'asc'),
    limit,
    cursor,
  },
  '/health/aggregate': { node: nodeParameter, ...range, by: oneOf(['minute', 'hour', 'day'], 'Also for each minute, hour or day (UTC).') },
  '/alerts': {
    node: anyNode,
    severity: oneOf(SEVERITIES, 'Only this severity.'),
    metric: {
      kind: 'text',
      schema: v.pipe(v.string(), v.regex(new RegExp(`^(${ALERT_METRICS.join('|')}|disk:/.*)$`))),
      description: 'Only this metric; `disk:/…`: a path of `disk.paths` that cannot be measured.',
      allowed: `one of ${ALERT_METRICS.join(', ')}, or disk:/… for one path of disk.paths`,
    },
    resolved: flag('Only resolved, or only open alerts.'),
    changes: flag('Every change of each alert instead of its last.'),
    after: {
      kind: 'text',
      schema: v.pipe(v.string(), v.regex(new RegExp(`^0$|${ID.source}`))),
      description:
        'With `changes=true`: what was recorded after this place, in the order of recording, each change once whatever the clocks say. The id of the last answer (its Last-Event-ID header) or of an event of /events; 0: from the beginning. Of the other filters only `node`.',
      allowed: 'the Last-Event-ID of an answer, or 0; together with changes=true, and but for that only with node and limit',
    },
    ...range,
    limit: { ...limit, schema: v.optional(limitSchema, 1000), description: 'Elements of a page; the next page is in the Link header.' },
    cursor,
  },
  '/status': {},
  '/events': {
    events: {
      kind: 'list',
      schema: v.pipe(v.array(v.picklist(['health', 'alert', 'shutdown'])), v.minLength(1)),
      description: 'Only these kinds of events, separated by commas.',
      allowed: 'a list of health, alert, shutdown',
    },
    node: anyNode,
  },
  '/metrics': {},
  '/snapshot': {},
  '/openapi.json': {},
} as const satisfies Readonly<Record<string, Readonly<Record<string, Parameter>>>>;

export type ApiPath = keyof typeof parameters;
