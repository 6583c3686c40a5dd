import { type MatchedWriter, type ReaderAction, StatefulReader } from '../endpoints/reader.ts';
import { LIMITS, OctetBudget } from '../limits.ts';
import type { DataFragSubmessage, DataSubmessage } from '../wire/message-reader.ts';
import { VENDOR } from '../wire/protocol.ts';

/** Of every sample of these tests. */
export const SOURCE = { address: '10.0.0.2', port: 7411 };

export const WRITER: MatchedWriter = {
  guid: 'a'.repeat(32),
  reliable: true,
  transientLocal: true,
  vendor: VENDOR.CYCLONE_DDS,
  userData: '',
};
export const { guid: sender } = WRITER;
const senderEntity = 0xaaaaaaaa;
const receiver = 0;

export const data = (sequenceNumber: number, payload = Buffer.from(`${sequenceNumber}`)): DataSubmessage => ({
  sender,
  senderEntity,
  receiver,
  sequenceNumber,
  payload,
  isKey: false,
  inlineQos: null,
  sourceTimestampMs: null,
});

/** The fragments of a sample, `octets` each. */
export function fragments(sequenceNumber: number, sample: Buffer, octets: number): DataFragSubmessage[] {
  return Array.from({ length: Math.ceil(sample.length / octets) }, (_, i) => ({
    ...data(sequenceNumber),
    payload: sample.subarray(i * octets, (i + 1) * octets),
    fragmentStart: i + 1,
    fragmentCount: 1,
    fragmentOctets: octets,
    sampleOctets: sample.length,
  }));
}

/** A stateful reader and its observed results. */
export interface ReaderRig {
  readonly reader: StatefulReader;
  readonly budget: OctetBudget;
  /** Delivered samples, as text. */
  readonly delivered: string[];
  /** Numbers reported as implausible. */
  readonly implausible: number[];
  /** Monotonic seconds of what follows; a poll sets it. */
  now: number;
  /** The result of a poll, in short form. */
  poll(now?: number): string[];
  due(now: number): number;
  receive(number: number, text?: string): void;
  heartbeat(first: number, last: number, isFinal?: boolean): void;
  gap(start: number, base: number, numbers?: readonly number[]): void;
}

export function readerRig({
  reliable = true,
  writer = WRITER,
  most = LIMITS.bufferedOctets,
  match = true,
  isUnordered = false,
} = {}): ReaderRig {
  const budget = new OctetBudget(most);
  const delivered: string[] = [];
  const implausible: number[] = [];
  const reader = new StatefulReader({
    entity: 0x104,
    reliable,
    isUnordered,
    budget,
    deliver: ({ data: { payload } }) => delivered.push(String(payload)),
    onImplausible: (_message, _writer, number) => implausible.push(number),
  });
  if (match) reader.match(writer, 0);
  const rig: ReaderRig = {
    reader,
    budget,
    delivered,
    implausible,
    now: 0,
    poll: (now = 0) => {
      rig.now = now;
      const sent: string[] = [];
      reader.poll(now, (_, actions) => sent.push(...actions.map(inShort)));
      return sent;
    },
    due: (now) => reader.poll(now, () => {}),
    receive: (number, text = `${number}`) => reader.onData(data(number, Buffer.from(text)), SOURCE, rig.now),
    heartbeat: (first, last, isFinal = false) =>
      reader.onHeartbeat({ sender, senderEntity, receiver, first, last, count: 0, isFinal }, rig.now),
    gap: (start, base, numbers = []) => reader.onGap({ sender, senderEntity, receiver, start, set: { base, numbers } }, rig.now),
  };
  return rig;
}

/** An action in short form: `asks 1:2 3`, `has 4:`, `fragments of 1 2:2`. */
export function inShort(action: ReaderAction): string {
  const numbers = `${action.set.base}:${action.set.numbers.join(' ')}`;
  if (action.kind === 'nackFrag') return `fragments of ${action.sequenceNumber} ${numbers}`;
  return `${action.isFinal ? 'has' : 'asks'} ${numbers}`;
}
