import type { HistoryReader, Mark, Position, RecordedEvent } from '../core/ports.ts';
import { ID } from './api/query-schema.ts';

export type EventKind = 'health' | 'alert' | 'shutdown';

export interface StreamFilter {
  readonly kinds: readonly EventKind[];
  /** Null: all nodes. */
  readonly node: string | null;
}

export function isBeyond(mark: Mark, reached: Mark): boolean {
  return mark.segment > reached.segment || (mark.segment === reached.segment && mark.sequence > reached.sequence);
}

/**
 * The position is the last record that was sent, of any node; a client can resume from it after a restart of the service. The number
 * distinguishes events with the same position. Null: the store has no records yet.
 */
export function formatId(position: Position | null, number: number): string {
  if (!position) return `_${number.toString(36)}`;
  const mark = ({ segment, sequence }: Mark): string => `${segment.toString(36)}.${sequence.toString(36)}`;
  return `${mark(position.health)}_${mark(position.alert)}_${number.toString(36)}`;
}

export function parseId(id: string): Position | null {
  const match = ID.exec(id);
  if (!match) return null;
  const [healthSegment, healthSequence, alertSegment, alertSequence] = match.slice(1).map((text) => Number.parseInt(text, 36)) as [
    number,
    number,
    number,
    number,
  ];
  return { health: { segment: healthSegment, sequence: healthSequence }, alert: { segment: alertSegment, sequence: alertSequence } };
}

/** An event read from the store. */
export interface MissedEvent extends RecordedEvent {
  /** Position of the stream after this event. */
  readonly position: Position;
}

export interface MissedEvents {
  readonly events: readonly MissedEvent[];
  readonly more: boolean;
}

/** Maximum number of events per store query. */
const EVENTS_AT_ONCE = 1000;

/** Reads the next events recorded after a position, in the order of recording. `more`: the store has further ones. */
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
