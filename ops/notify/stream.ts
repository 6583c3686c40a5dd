import type { IncomingMessage } from 'node:http';
import { type RestClient, ServiceRefused } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alert.ts';
import type { Log } from '../../src/core/ports.ts';
import { BEGINNING, CursorUnknown, changesAfter } from '../collect/alert-pages.ts';

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

/** How the alerts of the service come: by its event stream, by asking for them every POLL_MS, or not at all. */
export type Link = 'stream' | 'polling' | 'unreachable';

export interface Following {
  readonly rest: RestClient;
  readonly log: Log;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Id of the last event that was taken in; null: of none. */
  place(): string | null;
  /** From here on events are wanted; null: the place is no good any more. */
  setPlace(place: string | null): void;
  /** Changes in the order in which they were recorded, and the place after them. */
  onAlerts(alerts: readonly Alert[], place: string): void;
  /** All alerts that are open, after everything before was taken in. */
  onOpen(alerts: readonly Alert[]): void;
  /** Called when it changes; `problem` says what keeps it from being the stream. */
  onLink(link: Link, problem: string | null): void;
  /** How long the stream must have been still to have caught up. */
  readonly settleMs?: number;
  /** The first and shortest pause before it connects again. */
  readonly backoffMs?: number;
  /** The longest pause. */
  readonly pollMs?: number;
}

/** The service says something every 15 seconds. */
const SILENCE_SECONDS = 45;
const OPENING_SECONDS = 10;
const SETTLE_MS = 2000;
const MIN_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;
/** Without the stream alerts are asked for, and the stream is tried again, this often. */
export const POLL_MS = 10_000;

/**
 * Follows the alerts of the service until the signal ends it: what happened while either side was away comes too, once. Stream and
 * polling share one place in the order of recording, and never run at once: neither repeats nor leaves out what the other took.
 */
export async function follow(following: Following): Promise<void> {
  const { backoffMs = MIN_BACKOFF_MS, pollMs = POLL_MS, signal } = following;
  let link: Link | null = null;
  const enter = (next: Link, problem: string | null): void => {
    if (link === next) return;
    logLink(following, link, next, problem);
    link = next;
    following.onLink(next, problem);
  };
  let failures = 0;
  while (!signal.aborted) {
    const startMs = performance.now();
    try {
      await readStream(following, () => {
        enter('stream', null);
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      try {
        if (isLostPlace(error)) following.setPlace(null);
        await poll(following);
        enter('polling', (error as Error).message);
      } catch (pollError) {
        if (signal.aborted) return;
        enter('unreachable', whatFailed(pollError));
      }
    }
    // A stream that lived for a while may be opened again at once: the service was restarted.
    const lived = performance.now() - startMs;
    const wait = Math.min(pollMs, backoffMs * 2 ** Math.max(0, failures - 1));
    await pause(Math.max(backoffMs, wait - lived), signal);
  }
}

function logLink({ log, pollMs = POLL_MS }: Following, before: Link | null, link: Link, problem: string | null): void {
  if (link === 'unreachable') {
    log('notice', `notifications: ${problem}`);
    return;
  }
  if (before === 'unreachable') log('notice', 'notifications: the service answers again');
  if (link === 'polling') log('warning', 'notifications: event stream not available, polling alerts', { seconds: pollMs / 1000, problem });
  else if (before === 'polling') log('notice', 'notifications: event stream available again');
}

function whatFailed(error: unknown): string {
  const { message } = error as Error;
  if (error instanceof ServiceRefused && (error.status === 401 || error.status === 403))
    return `the service refuses to tell its alerts (${message}); check rest.token_file`;
  return `the service does not answer; its alerts are told when it does (${message})`;
}

/** Takes in what was recorded since the place, and what is open. Rejects where the service does not answer. */
async function poll(following: Following): Promise<void> {
  await takeChanges(following);
  const open = await openAlerts(following.rest, following.signal);
  // What changed meanwhile may be in the list or not: then the next poll, or the stream, compares.
  if ((await takeChanges(following)) === 0) following.onOpen(open);
}

/** The place is of another database, or of a time when nothing was recorded yet. */
function isLostPlace(error: unknown): boolean {
  return error instanceof CursorUnknown || (error instanceof ServiceRefused && (error.status === 400 || error.status === 410));
}

/** Brings the place to the end of what is recorded, and returns how many changes were taken in; without a place none are. */
async function takeChanges(following: Following): Promise<number> {
  const { rest, signal } = following;
  const since = following.place();
  let place = since ?? BEGINNING;
  let count = 0;
  try {
    for (let more = true; more; ) {
      const page = await changesAfter(rest, place, signal);
      ({ cursor: place, more } = page);
      if (since === null) continue;
      count += page.changes.length;
      if (page.changes.length > 0) following.onAlerts(page.changes, place);
    }
  } catch (error) {
    if (since === null || !isLostPlace(error)) throw error;
    following.setPlace(null);
    return takeChanges(following);
  }
  if (since === null) following.setPlace(place);
  return count;
}

async function readStream(following: Following, onOpened: () => void): Promise<void> {
  const { onAlerts, place, rest, settleMs = SETTLE_MS, signal } = following;
  // A store that cannot be read must not keep the stream from being opened: then it begins now.
  if (place() === null) await takeChanges(following).catch(() => undefined);
  const since = place();
  const response = await rest.stream('/events?events=alert', {
    signal,
    timeoutSeconds: OPENING_SECONDS,
    headers: since === null ? {} : { 'Last-Event-ID': since },
  });
  response.setTimeout(SILENCE_SECONDS * 1000); // In place of that of the opening; the client ends the request then.
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
    onAlerts([JSON.parse(data) as Alert], id);
  });
  let isOpened = false;
  response.setEncoding('utf8').on('data', (piece: string) => {
    if (!isOpened) {
      isOpened = true;
      onOpened();
      settle(settleMs);
    }
    try {
      read(piece);
    } catch {
      response.destroy(); // No JSON: this is not the service; from the last place it is tried again.
    }
  });
  await closed(response);
  clearTimeout(settling);
  // The service begins each stream with a line; one without any brings nothing.
  if (!isOpened) throw new Error('/events: the stream was opened and nothing came');
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
