import type { ServerResponse } from 'node:http';

/** Every kind of error there is. Codes are API: never renamed, never reused. */
export const CODES = {
  invalid_parameter: { status: 400, title: 'A query parameter has a value that is not allowed' },
  unknown_parameter: { status: 400, title: 'There is no such query parameter' },
  malformed_url: { status: 400, title: 'The URL is not well formed' },
  malformed_request: { status: 400, title: 'The request is not HTTP' },
  unauthorized: { status: 401, title: 'A bearer token is required' },
  not_local: { status: 403, title: 'Only for programs of this machine, or with a token' },
  snapshot_header_missing: { status: 403, title: 'A header is missing that no form or image can send' },
  unknown_node: { status: 404, title: 'No such monitoring node' },
  not_found: { status: 404, title: 'No such path' },
  method_not_allowed: { status: 405, title: 'The API only reads: GET and HEAD' },
  place_ahead: { status: 410, title: 'The place lies ahead of everything recorded here' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  url_too_long: { status: 414, title: 'The URL is too long' },
  host_not_allowed: { status: 421, title: 'The Host is not a name of this service' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  internal_error: { status: 500, title: 'An error of the service itself' },
  no_sample_yet: { status: 503, title: 'Nothing was measured yet' },
  snapshot_in_progress: { status: 503, title: 'Another snapshot is under way' },
  storage_unavailable: { status: 503, title: 'The store cannot be read' },
  too_many_connections: { status: 503, title: 'Too many connections' },
  too_many_event_streams: { status: 503, title: 'Too many readers of /events' },
  insufficient_storage: { status: 507, title: 'The disk has not the room' },
} as const;

export type ProblemCode = keyof typeof CODES;

/** Thrown by handlers; becomes an RFC 9457 document. `detail` says what to do. */
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

  /** The document; members without a value are left out. */
  toJSON(): Record<string, unknown> {
    const { status, title } = CODES[this.code];
    return { type: 'about:blank', title, status, code: this.code, detail: this.message, parameter: this.parameter, allowed: this.allowed };
  }
}

/** What a 405 says in its Allow header. */
export const ALLOW = 'GET, HEAD';

export function methodNotAllowed(method = ''): Problem {
  return new Problem('method_not_allowed', `${method} is not allowed; the API is read-only`);
}

/** Answers with a problem. Once a body has begun nothing can be said any more: the connection is cut. */
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
