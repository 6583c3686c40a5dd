/**
 * A shared worker with one event stream for all pages of a browser. A browser opens at most six connections to a host over HTTP/1.1: with
 * a stream of their own, six pages would block every other request. The worker ends with the last page.
 */
import { Api, ApiError } from './model/api.ts';
import { STREAM_TIMEOUT_MS } from './model/connection.ts';
import { followEvents, type StreamMessage, type StreamRequest } from './model/event-stream.ts';

interface Stream {
  readonly ports: Set<MessagePort>;
  readonly ending: AbortController;
  isOpen: boolean;
  /** When it was requested, or last delivered any bytes. */
  receivedMs: number;
}

/** By token, so that a page with a wrong token affects no other page. */
const streams = new Map<string | null, Stream>();

function open({ lastEventId, token }: StreamRequest): Stream {
  const stream: Stream = { ports: new Set(), ending: new AbortController(), isOpen: false, receivedMs: performance.now() };
  streams.set(token, stream);
  const send = (message: StreamMessage): void => {
    for (const port of stream.ports) port.postMessage(message);
  };
  const receiver = {
    opened: () => {
      stream.isOpen = true;
      send({ kind: 'opened' });
    },
    received: (events: Extract<StreamMessage, { kind: 'received' }>['events'], last: string) => {
      stream.receivedMs = performance.now();
      send({ kind: 'received', events, lastEventId: last });
    },
  };
  const api = new Api(new URL('.', location.href).href, { get: () => token, set: () => undefined });
  followEvents(api, lastEventId, receiver, stream.ending.signal).catch((error: unknown) => {
    if (streams.get(token) === stream) streams.delete(token);
    const { code, status } = error instanceof ApiError ? error : { code: null, status: null };
    send({ kind: 'failed', code, status });
  });
  return stream;
}

function join(port: MessagePort, request: StreamRequest): Stream {
  const present = streams.get(request.token);
  const isUsable = present !== undefined && !present.ending.signal.aborted && performance.now() - present.receivedMs <= STREAM_TIMEOUT_MS;
  // The pages of a stream that delivers nothing receive its failure, and reconnect as well.
  if (!isUsable) present?.ending.abort();
  const stream = isUsable ? present : open(request);
  stream.ports.add(port);
  // A page that joins loads the present state, and receives the events from now on.
  if (stream.isOpen) port.postMessage({ kind: 'opened' } satisfies StreamMessage);
  return stream;
}

addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports as readonly [MessagePort];
  let stream: Stream | null = null;
  const leave = (): void => {
    stream?.ports.delete(port);
    if (stream?.ports.size === 0) stream.ending.abort();
  };
  port.onmessage = ({ data }: MessageEvent<StreamRequest | null>) => {
    if (data === null) leave();
    else stream = join(port, data);
  };
  // A page that has crashed sends nothing.
  port.addEventListener('close', leave);
});
