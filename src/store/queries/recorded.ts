import { nodeOfAlertId, STATUSES } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import { compareCursors, type RecordCursor, type RecordedEvent, type RecordedPage, type RecordedQuery } from '../../core/ports.ts';
import { isoUtc } from '../../core/time/time.ts';
import type { Archive } from '../database/archive.ts';
import type { RecordedChange } from '../events/alert-log.ts';
import type { SegmentPart } from '../samples/raw-samples.ts';

/** Up to `limit` records after a cursor, in order of recording. */
export function recorded(archive: Archive, { healthAfter, alertAfter, node, limit }: RecordedQuery): RecordedPage {
  const changes = alertAfter === null ? [] : archive.alerts.recorded(alertAfter, node, limit + 1).map(toEvent);
  const statuses = healthAfter === null ? [] : statusesAfter(archive, healthAfter, node, limit + 1);
  // Both lists hold the first `limit` of their kind, so the merged list holds the first `limit` of both.
  const events = [...statuses, ...changes].sort((a, b) => compareCursors(a.cursor, b.cursor));
  return { events: events.slice(0, limit), more: events.length > limit };
}

function statusesAfter(archive: Archive, after: RecordCursor, node: string | null, limit: number): RecordedEvent[] {
  const found: RecordedEvent[] = [];
  let rows: Row[] = [];
  let segment = -1;
  const take = (): void => {
    rows.sort((a, b) => a.sequence - b.sequence);
    for (const row of rows.slice(0, limit - found.length)) found.push(statusEvent(row));
    rows = [];
  };
  for (const part of archive.samples.segmentParts(after.segment, node)) {
    if (part.segment !== segment) {
      take();
      if (found.length >= limit) return found;
      segment = part.segment;
    }
    const beyond = segment === after.segment ? after.sequence : 0;
    for (let row = 0; row < part.columns.count; row += 1) {
      const sequence = part.columns.sequence[row] as number;
      if (sequence > beyond) rows.push({ part, row, sequence });
    }
  }
  take();
  return found;
}

interface Row {
  readonly part: SegmentPart;
  readonly row: number;
  readonly sequence: number;
}

function statusEvent({ part: { segment, node, columns }, row, sequence }: Row): RecordedEvent {
  const readings = METRICS.map((metric, m) => {
    const value = (columns.metrics[m] as Float64Array)[row];
    return [metric, Number.isFinite(value) ? value : null];
  });
  const status = STATUSES[columns.status[row] as number];
  const timestamp = isoUtc(columns.timestampMs[row] as number);
  const json = JSON.stringify({ ...Object.fromEntries(readings), status, node_name: node, timestamp });
  return { kind: 'health', node, cursor: { segment, sequence }, json };
}

function toEvent({ alert, cursor }: RecordedChange): RecordedEvent {
  return { kind: 'alert', node: nodeOfAlertId(alert.alert_id), cursor, json: JSON.stringify(alert) };
}
