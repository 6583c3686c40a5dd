import type { MinuteEntry, RecordEntry, ServiceReading } from '../../harness/record/entries.ts';

/** The record without some of its entries. */
export function* without(entries: Iterable<RecordEntry>, drop: (entry: RecordEntry) => boolean): Generator<RecordEntry> {
  for (const entry of entries) if (!drop(entry)) yield entry;
}

/** The record with changed minute entries. */
export function* minutes(entries: Iterable<RecordEntry>, change: (minute: MinuteEntry) => MinuteEntry): Generator<RecordEntry> {
  for (const entry of entries) yield entry.type === 'minute' ? change(entry) : entry;
}

/** The record with changed readings of the service. */
export function readings(
  entries: Iterable<RecordEntry>,
  change: (reading: ServiceReading) => ServiceReading | null,
): Generator<RecordEntry> {
  return minutes(entries, (minute) => ({ ...minute, service: minute.service && change(minute.service) }));
}

/** For each kind of evidence, the record without it. */
export const WITHOUT: Readonly<Record<string, (entries: Iterable<RecordEntry>) => Iterable<RecordEntry>>> = {
  'the topic': (entries) => minutes(entries, (minute) => ({ ...minute, topic: null })),
  'any status': (entries) => minutes(entries, (minute) => ({ ...minute, topic: null, events: null })),
  'readings of the service': (entries) => readings(entries, () => null),
  'readings of memory': (entries) => readings(entries, (reading) => ({ ...reading, resident_bytes: [] })),
  'the list of open alerts': (entries) => without(entries, ({ type }) => type === 'open'),
  'scans of the stored samples': (entries) => without(entries, (entry) => entry.type === 'coverage' && entry.of === 'stored'),
  'scans of the collected rows': (entries) => without(entries, (entry) => entry.type === 'coverage' && entry.of === 'collected'),
  'the last scans': (entries) => withoutLastScans(entries),
  'the end': (entries) => without(entries, ({ type }) => type === 'end' || type === 'open'),
  'all but the begin': (entries) => without(entries, ({ type }) => type !== 'begin'),
  'the minutes': (entries) => without(entries, ({ type }) => type === 'minute'),
};

function withoutLastScans(entries: Iterable<RecordEntry>): RecordEntry[] {
  const all = [...entries];
  const last = all.findLast(({ type }) => type === 'minute') as MinuteEntry;
  return all.filter((entry) => entry.type !== 'coverage' || entry.boot < last.boot);
}
