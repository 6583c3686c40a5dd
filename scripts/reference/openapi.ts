import { toJsonSchema } from '@valibot/to-json-schema';
import type * as v from 'valibot';
import { SNAPSHOT_HEADER } from '../../src/core/snapshot.ts';
import { type ApiPath, type Parameter, parameters, valueType } from '../../src/http/api/query-schema.ts';
import { reportsSchema } from '../../src/http/api/reports-schema.ts';
import {
  aggregateSchema,
  alertDetailSchema,
  alertListSchema,
  alertSchema,
  healthStatusSchema,
  historySchema,
  problemSchema,
  shutdownEventSchema,
  statusDocumentSchema,
} from '../../src/http/api/schema.ts';
import { CODES, type ProblemCode } from '../../src/http/problem.ts';

type Json = Record<string, unknown>;

/** JSON Schema 2020-12, which OpenAPI 3.1 uses without changes. */
function jsonSchema(schema: v.GenericSchema): Json {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    errorMode: 'ignore',
    overrideAction: ({ valibotAction, jsonSchema: converted }) => {
      const action = valibotAction as { type: string; metadata?: Json };
      return action.type === 'metadata' ? { ...converted, ...action.metadata } : undefined;
    },
  });
  return rest as Json;
}

const HEADERS = {
  page: {
    Link: {
      description: 'Next page, as `<?…>; rel="next"`, relative to the URL of the request; absent on the last page.',
      schema: { type: 'string' },
    },
    Truncated: { description: 'Whether more elements of the range follow this page.', schema: { type: 'boolean' } },
  },
  truncated: { Truncated: { description: 'Whether earlier changes were left out.', schema: { type: 'boolean' } } },
  cursor: {
    'Last-Event-ID': {
      description: 'With `after`: the cursor of the last change on this page. Send it as `after` in the next request.',
      schema: { type: 'string' },
    },
  },
  file: {
    'Content-Length': { description: 'Size of the copy in bytes.', schema: { type: 'integer' } },
    'Content-Disposition': { description: 'A file name that contains the time of the request.', schema: { type: 'string' } },
  },
  etag: { ETag: { description: 'Version of this response, for If-None-Match.', schema: { type: 'string' } } },
};

interface Success {
  readonly description: string;
  readonly content: Json;
  readonly headers?: Json;
}

const json = (name: string): Json => ({ 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } });

const OPERATIONS: Readonly<Record<ApiPath, { id: string; summary: string; success: Success; problems: readonly ProblemCode[] }>> = {
  '/health': {
    id: 'getHealth',
    summary: 'The current health status',
    success: { description: 'The latest health status.', content: json('HealthStatus'), headers: HEADERS.etag },
    problems: ['unknown_node', 'no_sample_yet'],
  },
  '/health/history': {
    id: 'getHistory',
    summary: 'Health statuses of a time range; by default the last hour',
    success: {
      description:
        'A page of health statuses. CSV without `limit` contains the whole range. If the connection is closed before the end of the body, the rest could not be read.',
      content: { ...json('History'), 'text/csv': { schema: { type: 'string' } } },
      headers: HEADERS.page,
    },
    problems: ['unknown_node', 'storage_unavailable'],
  },
  '/health/aggregate': {
    id: 'getAggregate',
    summary: 'Statistics of a time range; by default the last 24 hours',
    success: { description: 'Statistics of the time range.', content: json('Aggregate') },
    problems: ['unknown_node', 'storage_unavailable'],
  },
  '/alerts': {
    id: 'getAlerts',
    summary: 'Open alerts and the alerts of the last 24 hours, newest first',
    success: { description: 'A page of alerts.', content: json('AlertList'), headers: { ...HEADERS.page, ...HEADERS.cursor } },
    problems: ['unknown_node', 'cursor_ahead', 'storage_unavailable'],
  },
  '/alerts/{alert_id}': {
    id: 'getAlert',
    summary: 'One alert of any time, open or resolved, with its changes',
    success: { description: 'The alert as of its last change, and its changes.', content: json('AlertDetail'), headers: HEADERS.truncated },
    problems: ['unknown_alert', 'storage_unavailable'],
  },
  '/status': {
    id: 'getStatus',
    summary: 'Summary of the overall system status',
    success: { description: 'The summary.', content: json('Status') },
    problems: [],
  },
  '/events': {
    id: 'getEvents',
    summary: 'Server-sent events as they happen; a stream is resumed with Last-Event-ID',
    success: {
      description: 'A stream of the events `health` (HealthStatus), `alert` (Alert) and `shutdown` (ShutdownProgress).',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    problems: ['unknown_node', 'too_many_event_streams'],
  },
  '/reports': {
    id: 'getReports',
    summary: 'The reliability reports on this machine, and the progress of a run; with `name`, one report',
    success: {
      description: 'The list, or with `name` a report in the requested format.',
      content: {
        ...json('Reports'),
        'text/html': { schema: { type: 'string' } },
        'text/markdown': { schema: { type: 'string' } },
        'application/xml': { schema: { type: 'string' } },
      },
    },
    problems: ['unknown_report', 'reports_unavailable'],
  },
  '/metrics': {
    id: 'getMetrics',
    summary: 'Metrics for Prometheus',
    success: { description: 'Prometheus text format.', content: { 'text/plain': { schema: { type: 'string' } } } },
    problems: [],
  },
  '/snapshot': {
    id: 'getSnapshot',
    summary: 'A copy of the database with everything recorded up to the request; for programs on this machine, or with a token',
    success: {
      description: 'An SQLite database that needs no further processing. HEAD creates no copy.',
      content: { 'application/vnd.sqlite3': { schema: { type: 'string', format: 'binary' } } },
      headers: HEADERS.file,
    },
    problems: ['not_local', 'snapshot_header_missing', 'storage_unavailable', 'snapshot_in_progress', 'insufficient_storage'],
  },
  '/openapi.json': {
    id: 'getOpenApi',
    summary: 'This document',
    success: { description: 'OpenAPI 3.1.', content: { 'application/json': { schema: { type: 'object' } } }, headers: HEADERS.etag },
    problems: [],
  },
};

/** Parameters outside of the query. */
const OTHER_PARAMETERS: Partial<Record<ApiPath, Json>> = {
  '/alerts/{alert_id}': {
    name: 'alert_id',
    in: 'path',
    required: true,
    description: 'The id of the alert. Its slashes may be percent-encoded or not.',
    schema: { type: 'string' },
  },
  '/snapshot': {
    name: SNAPSHOT_HEADER,
    in: 'header',
    required: false,
    description: 'Required if no token is configured: forms, links and images of a web page cannot send this header.',
    schema: { type: 'string', enum: ['1'] },
  },
};

function parameterDocument(name: string, parameter: Parameter): Json {
  const { description, schema } = parameter;
  const base = { name, in: 'query', required: false, description, schema: jsonSchema(schema) };
  return valueType(parameter) === 'array' ? { ...base, style: 'form', explode: false } : base;
}

function problemResponses(codes: readonly ProblemCode[]): Json {
  const byStatus = new Map<number, string[]>();
  for (const code of codes)
    byStatus.set(CODES[code].status, [...(byStatus.get(CODES[code].status) ?? []), `\`${code}\`: ${CODES[code].title}`]);
  return Object.fromEntries(
    [...byStatus].map(([status, lines]) => [
      String(status),
      { description: lines.join('; '), content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } },
    ]),
  );
}

/** Errors of every path. */
const GENERAL_PROBLEMS: readonly ProblemCode[] = [
  'invalid_parameter',
  'unknown_parameter',
  'malformed_url',
  'malformed_request',
  'unauthorized',
  'method_not_allowed',
  'request_timeout',
  'url_too_long',
  'host_not_allowed',
  'headers_too_large',
  'internal_error',
  'too_many_connections',
];

/** The OpenAPI 3.1 document of the whole API, as JSON. */
export function openApiDocument(version: string): Json {
  const paths: Json = {};
  for (const [path, operation] of Object.entries(OPERATIONS)) {
    const list = Object.entries(parameters[path as ApiPath] as Record<string, Parameter>);
    const other = OTHER_PARAMETERS[path as ApiPath];
    paths[path] = {
      get: {
        operationId: operation.id,
        summary: operation.summary,
        parameters: [...list.map(([name, parameter]) => parameterDocument(name, parameter)), ...(other ? [other] : [])],
        responses: {
          200: operation.success,
          ...(operation.success.headers === HEADERS.etag ? { 304: { description: 'The version in If-None-Match is current.' } } : {}),
          ...problemResponses([...GENERAL_PROBLEMS, ...operation.problems]),
        },
      },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'edge-health',
      version,
      description:
        'Health of an edge computer. The API is read-only. Every path also supports HEAD. Errors are RFC 9457 problem documents with a stable `code`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '.' }],
    paths,
    components: {
      schemas: {
        HealthStatus: jsonSchema(healthStatusSchema),
        History: jsonSchema(historySchema),
        Alert: jsonSchema(alertSchema),
        AlertDetail: jsonSchema(alertDetailSchema),
        AlertList: jsonSchema(alertListSchema),
        Aggregate: jsonSchema(aggregateSchema),
        Status: jsonSchema(statusDocumentSchema),
        Reports: jsonSchema(reportsSchema),
        ShutdownProgress: jsonSchema(shutdownEventSchema),
        Problem: jsonSchema(problemSchema),
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{}, { token: [] }],
  };
}
