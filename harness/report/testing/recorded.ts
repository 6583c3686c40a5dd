import type { RecordEntry } from '../../record/entries.ts';
import { RecordWriter } from '../../record/writer.ts';

/** Writes entries as the record of a folder; the first is `begin`. */
export function recorded(folder: string, entries: Iterable<RecordEntry>): void {
  const [begin, ...others] = entries;
  if (begin?.type !== 'begin') throw new Error('a record begins with begin');
  const writer = RecordWriter.create(folder, begin);
  // Some at a time: the writer syncs each time.
  for (let at = 0; at < others.length; at += 500) writer.append(...others.slice(at, at + 500));
  writer.close();
}
