import type { HistoryReader, Mark, Position, RecordedEvent } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';
import { ID } from './api/query-schema.ts';

export type EventKind = 'health' | 'alert' | 'shutdown';

export interface StreamFilter {
  readonly kinds: readonly EventKind[];
  /** Null: all nodes. */
  readonly node: string | null;
}

export function isBeyond(mark: Mark, reached: Mark): boolean {
  return mark.segment > reached.segment || (mark.segment === reached.segment && mark.order > reached.order);
}

/**
 * The position says up to where everything recorded was sent, of however many nodes: with it a client can resume after a
 * restart of the service. The number tells events of one position apart. Null: nothing is recorded yet, nor to be resumed.
 */
export function formatId(position: Position | null, number: number): string {
  if (!position) return `_${number.toString(36)}`;
  const mark = ({ segment, order }: Mark): string => `${segment.toString(36)}.${order.toString(36)}`;
  return `${mark(position.health)}_${mark(position.alert)}_${number.toString(36)}`;
}

export function parseId(id: string): Position | null {
  const match = ID.exec(id);
  if (!match) return parseFormerId(id);
  const [healthSegment, healthOrder, alertSegment, alertOrder] = match.slice(1).map((text) => Number.parseInt(text, 36)) as [
    number,
    number,
    number,
    number,
  ];
  return { health: { segment: healthSegment, order: healthOrder }, alert: { segment: alertSegment, order: alertOrder } };
}

/** The segment that a health status of version 0.1 is in began at most so long before it. */
const FORMER_SEGMENT_MS = 2 * MINUTE_MS;

/** Ids of version 0.1 hold times of one node: what it had lately comes again rather than not at all. */
function parseFormerId(id: string): Position | null {
  const match = /^(\d{1,15})\.\d{1,9}-(\d{1,15})\.\d{1,9}-\d{1,15}$/.exec(id);
  if (!match) return null;
  const [healthMs, alertMs] = match.slice(1).map(Number) as [number, number];
  return { health: { segment: Math.max(0, healthMs - FORMER_SEGMENT_MS), order: 0 }, alert: { segment: alertMs, order: 0 } };
}

/** An event as it is in the store. */
export interface MissedEvent extends RecordedEvent {
  /** Where the stream is once it was sent. */
  readonly position: Position;
}

export interface MissedEvents {
  readonly events: readonly MissedEvent[];
  readonly more: boolean;
}

/** Events that are brought from the store in one go. */
const EVENTS_AT_ONCE = 1000;

/** What the store has after a position, in the order in which it was recorded; not all at once. */
export async function missedSince(history: HistoryReader, since: Position, { kinds, node }: StreamFilter): Promise<MissedEvents> {
  const { events, more } = await history.recorded({
    healthAfter: kinds.includes('health') ? since.health : null,
    alertAfter: kinds.includes('alert') ? since.alert : null,
    node,
    limit: EVENTS_AT_ONCE,
  });
  let position = since;
  const missed = events.map((event) => {
    position = { ...position, [event.kind]: event.mark };
    return { ...event, position };
  });
  return { events: missed, more };
}
