import { setTimeout as sleep } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import { type RestClient, ServiceRefused } from './rest.ts';

/** One server-sent event. */
export interface ServerEvent {
  /** Null: the event has none. */
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

export interface FollowOptions {
  readonly rest: RestClient;
  readonly path: string;
  /** Ends the stream. */
  readonly signal: AbortSignal;
  /** Called before each connection: the id to resume after; null: begin with the next event. */
  readonly lastEventId: () => string | null | Promise<string | null>;
  /** The first bytes of a connection have arrived. */
  readonly onOpen: () => void;
  /** An error thrown here closes the connection. */
  readonly onEvent: (event: ServerEvent) => void;
  /** The service cannot resume after the last event id, as after a replacement of its data. `lastEventId` is called again at once. */
  readonly onCursorLost: (error: ServiceRefused) => void;
  /** A connection failed or ended; null: the server ended it. The pause before the next connection begins when this resolves. */
  readonly onClose: (error: Error | null) => void | Promise<void>;
  readonly minPauseMs: number;
  /** The pause doubles up to this while connections fail. */
  readonly maxPauseMs: number;
  /** A connection without data for this long is closed. */
  readonly dataTimeoutSeconds?: number;
}

/** Far above the longest event of the service. The limit protects against other programs on its port. */
const MAX_EVENT_CHARACTERS = 1_000_000;
/** Timeout for the first bytes. The service begins each stream with a line. */
const OPEN_SECONDS = 10;
/** Three of the service's keep-alive comments, which it sends every 15 s. */
const DATA_TIMEOUT_SECONDS = 45;
/** The shortest pause that a server can request. */
const MIN_RETRY_MS = 100;

/** Returns a function that parses the text of an event stream in chunks of any size. It throws if an event exceeds the limit. */
export function eventParser(
  onEvent: (event: ServerEvent) => void,
  onRetry: (ms: number) => void = () => undefined,
): (text: string) => void {
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARACTERS,
    onEvent: ({ data, event = 'message', id = null }) => onEvent({ id, event, data }),
    onRetry,
    onError: ({ type }) => {
      // Other errors are unknown fields, which the standard ignores.
      if (type === 'max-buffer-size-exceeded')
        throw new Error(`an event of more than ${MAX_EVENT_CHARACTERS} characters: is it edge-health?`);
    },
  });
  return (text) => parser.feed(text);
}

/** Follows an event stream over any number of connections, until the signal aborts. Rejects only if a callback does. */
export async function followEvents(options: FollowOptions): Promise<void> {
  const { lastEventId, maxPauseMs, minPauseMs, onClose, onCursorLost, onOpen, signal } = options;
  /** Number of consecutive failures. */
  let failures = 0;
  while (!signal.aborted) {
    const startMs = performance.now();
    const cursor = await lastEventId();
    let pauseMs = minPauseMs;
    let failure: Error | null = null;
    try {
      const retryMs = await readConnection(options, cursor, () => {
        failures = 0;
        onOpen();
      });
      pauseMs = Math.min(minPauseMs, Math.max(MIN_RETRY_MS, retryMs));
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (cursor !== null && error instanceof ServiceRefused && (error.status === 400 || error.status === 410)) {
        onCursorLost(error);
        if (failures === 1) continue;
      }
      failure = error as Error;
    }
    await onClose(failure);
    // The time that the failed connection took counts towards the pause.
    const elapsedMs = performance.now() - startMs;
    if (failures > 0) pauseMs = Math.max(minPauseMs, Math.min(maxPauseMs, minPauseMs * 2 ** (failures - 1)) - elapsedMs);
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Reads one connection to its end. Resolves with the reconnection time that the server sent. Rejects if the connection is interrupted. */
async function readConnection(
  { onEvent, path, rest, signal, dataTimeoutSeconds = DATA_TIMEOUT_SECONDS }: FollowOptions,
  cursor: string | null,
  onOpen: () => void,
): Promise<number> {
  const openSeconds = Math.min(OPEN_SECONDS, dataTimeoutSeconds);
  const headers = { Accept: 'text/event-stream', ...(cursor === null ? {} : { 'Last-Event-ID': cursor }) };
  const response = await rest.stream(path, { headers, signal, timeoutSeconds: openSeconds });
  const { 'content-type': type = 'no type' } = response.headers;
  if (!type.startsWith('text/event-stream')) {
    response.destroy();
    throw new Error(`${rest.base}${path.split('?', 1)[0]} answers with ${type}: is it edge-health?`);
  }
  response.setTimeout(0); // Disables the request's own timeout, which `timer` replaces from here on.
  let timer: NodeJS.Timeout | undefined;
  const expectData = (seconds: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => response.destroy(new Error(`no data for ${seconds} s`)), seconds * 1000);
  };
  let retryMs = Number.POSITIVE_INFINITY;
  const parse = eventParser(onEvent, (ms) => {
    retryMs = ms;
  });
  let isOpen = false;
  expectData(openSeconds);
  try {
    for await (const text of response.setEncoding('utf8') as AsyncIterable<string>) {
      expectData(dataTimeoutSeconds);
      if (!isOpen) onOpen();
      isOpen = true;
      parse(text);
    }
  } finally {
    clearTimeout(timer);
  }
  if (!isOpen) throw new Error(`${path}: the stream ended before its first line`);
  return retryMs;
}
