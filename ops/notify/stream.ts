import type { IncomingMessage } from 'node:http';
import { type RestClient, ServiceRefused } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alert.ts';
import type { Log } from '../../src/core/ports.ts';

export interface StreamEvent {
  readonly id: string | null;
  readonly kind: string;
  readonly data: string;
}

/** Longer than anything that the service sends; a stream without ends of lines must not fill the memory. */
const MAX_BLOCK_CHARACTERS = 1_000_000;

/** Cuts the text of a stream of server-sent events into events, however it comes in pieces. */
export function eventParser(onEvent: (event: StreamEvent) => void): (piece: string) => void {
  let rest = '';
  return (piece) => {
    const blocks = (rest + piece).replaceAll('\r\n', '\n').split('\n\n');
    rest = (blocks.pop() ?? '').slice(-MAX_BLOCK_CHARACTERS);
    for (const block of blocks) {
      let id: string | null = null;
      let kind = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        const { 1: field, 2: value = '' } = /^([a-z]+):? ?(.*)$/.exec(line) ?? [];
        if (field === 'id') id = value;
        else if (field === 'event') kind = value;
        else if (field === 'data') data.push(value);
      }
      if (data.length > 0) onEvent({ id, kind, data: data.join('\n') });
    }
  };
}

export interface Following {
  readonly rest: RestClient;
  readonly log: Log;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Id of the last event that was taken in; null: of none. */
  place(): string | null;
  /** From here on events are wanted; null: the place is no good any more. */
  setPlace(place: string | null): void;
  onAlert(alert: Alert, place: string): void;
  /** All alerts that are open, after the stream has caught up. */
  onOpen(alerts: readonly Alert[]): void;
  /** How long the stream must have been still to have caught up. */
  readonly settleMs?: number;
  /** The first and shortest pause before it connects again. */
  readonly backoffMs?: number;
}

/** The service says something every 15 seconds. */
const SILENCE_SECONDS = 45;
const FIRST_PLACE_SECONDS = 10;
const SETTLE_MS = 2000;
const MIN_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;

/** Follows the alerts of the service until the signal ends it: what happened while either side was away comes too, once. */
export async function follow(following: Following): Promise<void> {
  const { backoffMs = MIN_BACKOFF_MS, log, signal } = following;
  let failures = 0;
  while (!signal.aborted) {
    const startMs = performance.now();
    try {
      if (following.place() === null) following.setPlace(await firstPlace(following));
      await readStream(following, () => {
        if (failures > 0) log('notice', 'notifications: the service answers again');
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (failures === 1) log('notice', whatFailed(error));
      if (error instanceof ServiceRefused && (error.status === 410 || error.status === 400)) following.setPlace(null);
    }
    // A stream that lived for a while may be opened again at once: the service was restarted.
    const lived = performance.now() - startMs;
    const wait = Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** Math.max(0, failures - 1));
    await pause(Math.max(backoffMs, wait - lived), signal);
  }
}

function whatFailed(error: unknown): string {
  const { message } = error as Error;
  if (error instanceof ServiceRefused && (error.status === 401 || error.status === 403))
    return `notifications: the service refuses to tell its alerts (${message}); check rest.token_file`;
  return `notifications: the service does not answer; its alerts are told when it does (${message})`;
}

/** The id of the next event of any kind; null: there was none for a while. */
async function firstPlace({ rest, signal }: Following): Promise<string | null> {
  const response = await rest.stream('/events', { signal, timeoutSeconds: FIRST_PLACE_SECONDS });
  let place: string | null = null;
  const timer = setTimeout(() => response.destroy(), FIRST_PLACE_SECONDS * 1000);
  const read = eventParser(({ id }) => {
    place ??= id;
    response.destroy();
  });
  response.setEncoding('utf8').on('data', read);
  await closed(response);
  clearTimeout(timer);
  return place;
}

async function readStream(following: Following, onOpened: () => void): Promise<void> {
  const { onAlert, place, rest, settleMs = SETTLE_MS, signal } = following;
  const since = place();
  const response = await rest.stream('/events?events=alert', {
    signal,
    timeoutSeconds: SILENCE_SECONDS,
    headers: since === null ? {} : { 'Last-Event-ID': since },
  });
  onOpened();
  let count = 0;
  let settling: NodeJS.Timeout | undefined;
  const settle = (waitMs: number): void => {
    clearTimeout(settling);
    settling = setTimeout(async () => {
      const before = count;
      try {
        const open = await openAlerts(rest, signal);
        if (count === before) following.onOpen(open);
        else settle(settleMs);
      } catch {
        settle(Math.min(MAX_BACKOFF_MS, 2 * waitMs)); // Its store may be unable to answer; whether it is gone the stream tells.
      }
    }, waitMs);
  };
  const read = eventParser(({ data, id, kind }) => {
    if (kind !== 'alert' || id === null) return;
    count += 1;
    settling?.refresh();
    onAlert(JSON.parse(data) as Alert, id);
  });
  settle(settleMs);
  response.setEncoding('utf8').on('data', (piece: string) => {
    try {
      read(piece);
    } catch {
      response.destroy(); // No JSON: this is not the service; from the last place it is tried again.
    }
  });
  await closed(response);
  clearTimeout(settling);
}

async function openAlerts(rest: RestClient, signal: AbortSignal): Promise<Alert[]> {
  const open: Alert[] = [];
  for (let path: string | null = '/alerts?resolved=false&limit=1000'; path !== null; ) {
    const { body, next }: { body: { data: Alert[] }; next: string | null } = await rest.page<{ data: Alert[] }>(path, { signal });
    open.push(...body.data);
    path = next;
  }
  return open;
}

/** Resolves when a response is over, however. */
function closed(response: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    response.on('error', () => undefined);
    response.once('close', resolve);
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}
