import { type Api, ApiError } from './api.ts';
import { type ServerEvent, SseParser } from './sse.ts';

/** Called with what the event stream delivers. */
export interface EventReceiver {
  readonly opened: () => void;
  /** `events` is empty for a heartbeat; `lastEventId`: the id after them. */
  readonly received: (events: readonly ServerEvent[], lastEventId: string) => void;
}

/** The service closes old streams on purpose; a stream that ends sooner than this means that the service is shutting down. */
const MIN_STREAM_MS = 60_000;

/**
 * Follows the event stream after `lastEventId`, through the shared worker if the browser has one. Rejects when the stream fails or is
 * aborted; a stream that the service closes because it is old is resumed.
 */
export async function followEvents(api: Api, lastEventId: string, receiver: EventReceiver, signal: AbortSignal): Promise<void> {
  if (api.eventWorker !== null && (await followShared(api.eventWorker, { token: api.token, lastEventId }, receiver, signal))) return;
  let id = lastEventId;
  for (let isFirst = true; ; isFirst = false) {
    const openedMs = performance.now();
    const reader = await api.openEventStream(id, signal);
    if (isFirst) receiver.opened();
    const parser = new SseParser(id);
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) break;
      const events = parser.push(decoder.decode(value, { stream: true }));
      id = parser.lastEventId;
      receiver.received(events, id);
    }
    if (performance.now() - openedMs < MIN_STREAM_MS) throw new ApiError(200, null);
  }
}

/** First message of a page to the shared worker (event-worker.ts). Null: the page no longer follows. */
export interface StreamRequest {
  readonly token: string | null;
  readonly lastEventId: string;
}

/** Messages of the shared worker to a page. */
export type StreamMessage =
  | { readonly kind: 'opened' }
  | { readonly kind: 'received'; readonly events: readonly ServerEvent[]; readonly lastEventId: string }
  /** `status` null: no response, or the connection was lost. */
  | { readonly kind: 'failed'; readonly status: number | null; readonly code: string | null };

/** Rejects when the stream fails or is aborted. Resolves with false if the browser does not run the worker. */
function followShared(url: URL, request: StreamRequest, receiver: EventReceiver, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let worker: SharedWorker;
    try {
      worker = new SharedWorker(url);
    } catch {
      resolve(false); // The page has no access to storage.
      return;
    }
    const { port } = worker;
    const end = (): void => {
      // Not every browser reports the closing of a port to its other end.
      port.postMessage(null);
      port.close();
    };
    worker.onerror = () => {
      end();
      resolve(false);
    };
    signal.addEventListener('abort', () => {
      end();
      reject(signal.reason);
    });
    port.onmessage = ({ data }: MessageEvent<StreamMessage>) => {
      if (signal.aborted) return;
      if (data.kind === 'opened') receiver.opened();
      else if (data.kind === 'received') receiver.received(data.events, data.lastEventId);
      else {
        end();
        reject(data.status === null ? new TypeError('the event stream was interrupted') : new ApiError(data.status, data.code));
      }
    };
    port.postMessage(request);
  });
}
