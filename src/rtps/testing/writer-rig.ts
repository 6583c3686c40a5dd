import type { Change, MatchedReader, WriterAction } from '../endpoints/writer.ts';
import { StatefulWriter } from '../endpoints/writer.ts';

export const reader = (name: string, changes: Partial<MatchedReader> = {}): MatchedReader => ({
  guid: name.padEnd(32, '0'),
  reliable: true,
  transientLocal: true,
  userData: '',
  ...changes,
});
export const change = (changes: Partial<Change> = {}): Omit<Change, 'sequenceNumber'> => ({
  payload: Buffer.from('data'),
  isKey: false,
  inlineQos: null,
  timestampMs: 0,
  only: null,
  instance: null,
  ...changes,
});

/** The result of a poll in short form: `a: data 1 2, gap 3, heartbeat 1-3`. */
export function poll(writer: StatefulWriter, now: number): { readonly sent: string[]; readonly due: number } {
  const sent: string[] = [];
  const due = writer.poll(now, ({ guid }, actions) => sent.push(`${guid.replace(/0+$/, '')}: ${actions.map(inShort).join(', ')}`));
  return { sent, due };
}

function inShort(action: WriterAction): string {
  if (action.kind === 'data') return `data ${action.change.sequenceNumber}`;
  if (action.kind === 'heartbeat') return `heartbeat ${action.first}-${action.last}${action.isFinal ? ' final' : ''}`;
  if (action.kind === 'gap') return `gap ${action.numbers.join(' ')}`;
  return `fragments ${action.change.sequenceNumber}: ${action.numbers.join(' ')}`;
}

let counts = 0;
/** The reader acknowledges all below the base, and requests these numbers. */
export function ackNack(
  writer: StatefulWriter,
  { guid }: MatchedReader,
  base: number,
  numbers: readonly number[] = [],
  isFinal = numbers.length === 0,
): void {
  writer.onAckNack(guid, { base, numbers }, ++counts, isFinal);
}

/** Keeps the last three for late joiners. */
export const topicWriter = (options: { depth?: number; transientLocal?: boolean; isPeriodic?: boolean } = {}): StatefulWriter =>
  new StatefulWriter({ entity: 0x103, depth: 3, transientLocal: true, ...options });
