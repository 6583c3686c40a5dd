import { messages } from '../messages/messages.ts';

/** The service returned an error status, or ended the event stream (status 200). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string | null;

  constructor(status: number, code: string | null) {
    super(`the service answered ${status}${code === null ? '' : ` (${code})`}`);
    this.status = status;
    this.code = code;
  }
}

/** Whether an error ends the attempt. Other API errors affect only the list that was requested. */
export function isFatal(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 401;
}

/** Describes an error for the user; null: the service returned no error. */
export function reasonOf(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.status < 400) return null;
  const { connection } = messages;
  return error.code === 'too_many_event_streams' ? connection.tooManyPages : connection.answersError(error.status);
}

export interface TokenStore {
  get(): string | null;
  set(token: string): void;
}

/** Timeout for a complete response, except that of the event stream. */
const RESPONSE_TIMEOUT_MS = 15_000;

/** Client of the REST API; sends the access token if there is one. */
export class Api {
  readonly #base: string;
  readonly #tokens: TokenStore;
  /** Shared worker with the event stream of all pages; null: none. */
  readonly eventWorker: URL | null;

  constructor(base: string, tokens: TokenStore, eventWorker: URL | null = null) {
    this.#base = base;
    this.#tokens = tokens;
    this.eventWorker = eventWorker;
  }

  async getJson<T>(path: string, signal: AbortSignal): Promise<T> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
    const response = await this.#request(path, { Accept: 'application/json' }, limited);
    return (await response.json()) as T;
  }

  /** Like getJson; `next`: the URL of the next page, null on the last one. */
  async getPage<T>(path: string, signal: AbortSignal): Promise<{ readonly body: T; readonly next: string | null }> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
    const response = await this.#request(path, { Accept: 'application/json' }, limited);
    // RFC 8288: relative to the URL of the request.
    const next = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
    return { body: (await response.json()) as T, next: next === undefined ? null : new URL(next, new URL(path, this.#base)).href };
  }

  /** The token, which a plain link cannot send; null: none was needed. */
  get token(): string | null {
    return this.#tokens.get();
  }

  async getBlob(path: string): Promise<Blob> {
    return (await this.#request(path, {}, AbortSignal.timeout(RESPONSE_TIMEOUT_MS))).blob();
  }

  /** Opens the event stream after `lastEventId`. */
  async openEventStream(lastEventId: string, signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const resume = lastEventId === '' ? {} : { 'Last-Event-ID': lastEventId };
    const response = await this.#request('events', { Accept: 'text/event-stream', ...resume }, signal);
    if (response.body === null) throw new ApiError(response.status, null);
    return response.body.getReader();
  }

  async #request(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const { token } = this;
    const authorization = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(new URL(path, this.#base), { headers: { ...headers, ...authorization }, cache: 'no-store', signal });
    if (response.ok) return response;
    // The body may not be a problem document, such as a proxy's error page; only the status code is known then.
    const problem = (await response.json().catch(() => null)) as { code?: unknown } | null;
    throw new ApiError(response.status, typeof problem?.code === 'string' ? problem.code : null);
  }
}
