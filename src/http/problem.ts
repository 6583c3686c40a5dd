import type { ServerResponse } from 'node:http';

/** All errors of the API. The codes are part of it: they are never renamed or reused. */
export const CODES = {
  invalid_parameter: { status: 400, title: 'Invalid value of a query parameter' },
  unknown_parameter: { status: 400, title: 'Unknown query parameter' },
  malformed_url: { status: 400, title: 'Malformed URL' },
  malformed_request: { status: 400, title: 'Malformed HTTP request' },
  unauthorized: { status: 401, title: 'Bearer token required' },
  not_local: { status: 403, title: 'Only allowed for programs on this machine, or with a token' },
  snapshot_header_missing: { status: 403, title: 'Required request header missing' },
  unknown_node: { status: 404, title: 'Unknown node' },
  unknown_alert: { status: 404, title: 'Unknown alert' },
  unknown_report: { status: 404, title: 'Unknown report' },
  not_found: { status: 404, title: 'No such path' },
  method_not_allowed: { status: 405, title: 'Method not allowed; the API is read-only' },
  cursor_ahead: { status: 410, title: 'The cursor is ahead of every record in this database' },
  request_timeout: { status: 408, title: 'Timeout while receiving the request' },
  url_too_long: { status: 414, title: 'URL too long' },
  host_not_allowed: { status: 421, title: 'Host name not allowed' },
  headers_too_large: { status: 431, title: 'Request headers too large' },
  internal_error: { status: 500, title: 'Internal error' },
  no_sample_yet: { status: 503, title: 'No sample yet' },
  snapshot_in_progress: { status: 503, title: 'Another snapshot is in progress' },
  reports_unavailable: { status: 503, title: 'The reports cannot be read' },
  storage_unavailable: { status: 503, title: 'The database cannot be read' },
  too_many_connections: { status: 503, title: 'Too many connections' },
  too_many_event_streams: { status: 503, title: 'Too many event streams' },
  insufficient_storage: { status: 507, title: 'Not enough disk space' },
} as const;

export type ProblemCode = keyof typeof CODES;

/** Thrown by handlers; sent as an RFC 9457 document. `detail` states the cause and the remedy. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly parameter: string | undefined;
  readonly allowed: string | undefined;

  constructor(code: ProblemCode, detail: string, about: { parameter?: string; allowed?: string } = {}) {
    super(detail);
    this.code = code;
    this.parameter = about.parameter;
    this.allowed = about.allowed;
  }

  get status(): number {
    return CODES[this.code].status;
  }

  /** The document; members without a value are omitted. */
  toJSON(): Record<string, unknown> {
    const { status, title } = CODES[this.code];
    return { type: 'about:blank', title, status, code: this.code, detail: this.message, parameter: this.parameter, allowed: this.allowed };
  }
}

/** Allow header of a 405 response. */
export const ALLOW = 'GET, HEAD';

export function methodNotAllowed(method = ''): Problem {
  return new Problem('method_not_allowed', `${method} is not allowed; the API is read-only`);
}

/** Responds with a problem. If a body has already begun, closing the connection is the only way to report an error. */
export function sendProblem(response: ServerResponse, problem: Problem, headers: Readonly<Record<string, string>> = {}): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = JSON.stringify(problem);
  const retry: Record<string, string> = problem.status === 503 ? { 'Retry-After': '1' } : {};
  response.writeHead(problem.status, {
    'Content-Type': 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...retry,
    ...headers,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
