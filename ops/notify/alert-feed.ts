import { alertListSchema } from '../../src/client/documents.ts';
import { followEvents } from '../../src/client/event-stream.ts';
import { type RestClient, ServiceRefused } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { Log } from '../../src/core/ports.ts';
import { BEGINNING, CursorUnknown, changesAfter } from '../collect/alert-pages.ts';

/** How alerts arrive: over /events, by polling /alerts, or not at all. */
export type Link = 'stream' | 'polling' | 'unreachable';

export interface AlertFeed {
  readonly rest: RestClient;
  readonly log: Log;
  /** Ends the feed. */
  readonly signal: AbortSignal;
  /** Id of the last change that was received, or null. */
  cursor(): string | null;
  /** Called with null when the service no longer has the cursor. */
  setCursor(cursor: string | null): void;
  /** Receives changes in the order in which they were recorded, and the cursor after them. */
  onAlerts(alerts: readonly Alert[], cursor: string): void;
  /** Receives all open alerts, as of the last change received. */
  onOpen(alerts: readonly Alert[]): void;
  /** Called when the link changes; `problem` is why it is not the stream. */
  onLink(link: Link, problem: string | null): void;
  /** How long the stream must be free of changes before open alerts are compared. */
  readonly settleMs?: number;
  /** The shortest pause between two connections. */
  readonly backoffMs?: number;
  /** The longest pause: without the stream, alerts are polled this often. */
  readonly pollMs?: number;
}

const SETTLE_MS = 2000;
const MAX_SETTLE_MS = 60_000;
const MIN_BACKOFF_MS = 1000;
const POLL_MS = 10_000;

/**
 * Reports each recorded change of an alert once until the signal aborts, including changes while either side was down. Stream and polling
 * share one cursor in recording order and never run at the same time, so neither repeats or skips a change.
 */
export async function followAlerts(feed: AlertFeed): Promise<void> {
  const { backoffMs = MIN_BACKOFF_MS, log, onAlerts, onOpen, pollMs = POLL_MS, rest, settleMs = SETTLE_MS, signal } = feed;
  let link: Link | null = null;
  const enter = (next: Link, problem: string | null): void => {
    if (link === next) return;
    if (next === 'unreachable') log('notice', `notifications: ${problem}`);
    else if (link === 'unreachable') log('notice', 'notifications: the service responds again');
    if (next === 'polling')
      log('warning', 'notifications: event stream not available, polling alerts', { seconds: pollMs / 1000, problem });
    if (next === 'stream' && link === 'polling') log('notice', 'notifications: event stream available again');
    link = next;
    feed.onLink(next, problem);
  };
  let isOpen = false;
  let changes = 0;
  /** `changes` when the stream was opened. */
  let changesBefore = 0;
  let settling: NodeJS.Timeout | undefined;
  const settle = (waitMs: number): void => {
    clearTimeout(settling);
    settling = setTimeout(async () => {
      const before = changes;
      try {
        const open = await openAlerts(rest, signal);
        if (changes === before) onOpen(open);
        else settle(settleMs);
      } catch {
        // The store may fail to respond; the stream shows whether the service runs.
        if (isOpen && !signal.aborted) settle(Math.min(MAX_SETTLE_MS, 2 * waitMs));
      }
    }, waitMs);
  };
  await followEvents({
    rest,
    path: '/events?events=alert',
    signal,
    minPauseMs: backoffMs,
    maxPauseMs: pollMs,
    lastEventId: async () => {
      // The stream opens even if the store cannot be read; it then starts with the next change.
      if (feed.cursor() === null) await readChanges(feed).catch(() => undefined);
      return feed.cursor();
    },
    onOpen: () => {
      isOpen = true;
      changesBefore = changes;
      enter('stream', null);
      settle(settleMs);
    },
    onEvent: ({ data, event, id }) => {
      const cursor = id ?? feed.cursor();
      if (event !== 'alert' || cursor === null) return;
      changes += 1;
      settling?.refresh();
      onAlerts([JSON.parse(data) as Alert], cursor);
    },
    onCursorLost: () => feed.setCursor(null),
    onClose: async (error) => {
      clearTimeout(settling);
      const wasOpen = isOpen;
      isOpen = false;
      // A stream that worked is reopened before polling starts. The service also ends one whose missed changes it cannot read.
      if (wasOpen && changes > changesBefore) return;
      try {
        await poll(feed);
        if (!wasOpen) enter('polling', error?.message ?? null);
      } catch (pollError) {
        if (!signal.aborted) enter('unreachable', reasonOf(pollError));
      }
    },
  });
  clearTimeout(settling);
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceRefused && (error.status === 401 || error.status === 403))
    return `the service requires another token (HTTP ${error.status}); after a change: systemctl reload edge-health`;
  return `no response from the service; alerts are notified when it responds (${(error as Error).message})`;
}

/** Reads the changes after the cursor, and the open alerts. Rejects if the service does not respond. */
async function poll(feed: AlertFeed): Promise<void> {
  await readChanges(feed);
  const open = await openAlerts(feed.rest, feed.signal);
  // The list may or may not contain changes made in the meantime. In that case, the next poll or the stream compares.
  if ((await readChanges(feed)) === 0) feed.onOpen(open);
}

/** Moves the cursor to the end of the record. Resolves with the number of changes reported, which is 0 without a cursor. */
async function readChanges(feed: AlertFeed): Promise<number> {
  const since = feed.cursor();
  let cursor = since ?? BEGINNING;
  let count = 0;
  try {
    for (let more = true; more; ) {
      const page = await changesAfter(feed.rest, cursor, feed.signal);
      ({ more, cursor } = page);
      if (since === null || page.changes.length === 0) continue;
      count += page.changes.length;
      feed.onAlerts(page.changes, cursor);
    }
  } catch (error) {
    const isLost = error instanceof CursorUnknown || (error instanceof ServiceRefused && (error.status === 400 || error.status === 410));
    if (since === null || !isLost) throw error;
    feed.setCursor(null);
    return readChanges(feed);
  }
  if (since === null) feed.setCursor(cursor);
  return count;
}

async function openAlerts(rest: RestClient, signal: AbortSignal): Promise<Alert[]> {
  const open: Alert[] = [];
  for (let path: string | null = '/alerts?resolved=false&limit=1000'; path !== null; ) {
    const { body, next }: { body: { data: Alert[] }; next: string | null } = await rest.page<{ data: Alert[] }>(path, {
      signal,
      schema: alertListSchema,
    });
    open.push(...body.data);
    path = next;
  }
  return open;
}
