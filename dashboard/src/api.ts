/** An answer that is not what was asked for. Without a status the service could not be reached. */
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

/** Whether nothing more can come of this attempt; one list that cannot be read costs that list only. */
export function isFatal(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 401;
}

/** In words for a teacher, where the service itself said something that they can act on. */
export function reasonOf(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.status < 400) return null;
  if (error.code === 'too_many_event_streams') return 'Too many dashboards are open on this machine.';
  return `The service answers with error ${error.status}.`;
}

/** Where the token is kept: the session storage of the browser tab. */
export interface TokenStore {
  get(): string | null;
  set(token: string): void;
}

/** For an answer other than the event stream to be complete. */
const ANSWER_WITHIN_MS = 15_000;

/** Reads the REST API, with the token where there is one. */
export class Api {
  readonly #base: string;
  readonly #tokens: TokenStore;

  constructor(base: string, tokens: TokenStore) {
    this.#base = base;
    this.#tokens = tokens;
  }

  async json<T>(path: string, signal: AbortSignal): Promise<T> {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]);
    const response = await this.#ask(path, { Accept: 'application/json' }, within);
    return (await response.json()) as T;
  }

  /** The event stream, from after `lastEventId` on. */
  async events(lastEventId: string, signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const resume = lastEventId === '' ? {} : { 'Last-Event-ID': lastEventId };
    const response = await this.#ask('events', { Accept: 'text/event-stream', ...resume }, signal);
    if (response.body === null) throw new ApiError(response.status, null);
    return response.body.getReader();
  }

  async #ask(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const token = this.#tokens.get();
    const authorization = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(new URL(path, this.#base), { headers: { ...headers, ...authorization }, cache: 'no-store', signal });
    if (response.ok) return response;
    // A body that is no problem document, such as a proxy's page, leaves the status code as the only information.
    const problem = (await response.json().catch(() => null)) as { code?: unknown } | null;
    throw new ApiError(response.status, typeof problem?.code === 'string' ? problem.code : null);
  }
}
