import type {
  AckNackSubmessage,
  DataFragSubmessage,
  DataSubmessage,
  GapSubmessage,
  HeartbeatFragSubmessage,
  HeartbeatSubmessage,
  NackFragSubmessage,
} from '../wire/message-reader.ts';
import { readMessage } from '../wire/message-reader.ts';
import type { GuidPrefix } from '../wire/protocol.ts';

export type Submessage =
  | ({ readonly kind: 'data' } & DataSubmessage)
  | ({ readonly kind: 'dataFrag' } & DataFragSubmessage)
  | ({ readonly kind: 'heartbeat' } & HeartbeatSubmessage)
  | ({ readonly kind: 'heartbeatFrag' } & HeartbeatFragSubmessage)
  | ({ readonly kind: 'gap' } & GapSubmessage)
  | ({ readonly kind: 'ackNack' } & AckNackSubmessage)
  | ({ readonly kind: 'nackFrag' } & NackFragSubmessage);

const NOBODY: GuidPrefix = 'f'.repeat(24);

/** The destination of a datagram, by its first INFO_DST; null: all participants. */
export function destinationOf(datagram: Buffer): GuidPrefix | null {
  return datagram[20] === 0x0e ? datagram.toString('hex', 24, 36) : null;
}

/** The submessages of a datagram as the participant `as` reads them; by default as the one it is directed to. */
export function dissect(datagram: Buffer, as: GuidPrefix = destinationOf(datagram) ?? NOBODY): Submessage[] {
  const found: Submessage[] = [];
  readMessage(datagram, Buffer.from(as, 'hex'), {
    onMessage: (sender: string) => sender,
    onData: (data) => found.push({ kind: 'data', ...data }),
    onDataFrag: (data) => found.push({ kind: 'dataFrag', ...data }),
    onHeartbeat: (heartbeat) => found.push({ kind: 'heartbeat', ...heartbeat }),
    onHeartbeatFrag: (heartbeat) => found.push({ kind: 'heartbeatFrag', ...heartbeat }),
    onGap: (gap) => found.push({ kind: 'gap', ...gap }),
    onAckNack: (ackNack) => found.push({ kind: 'ackNack', ...ackNack }),
    onNackFrag: (nackFrag) => found.push({ kind: 'nackFrag', ...nackFrag }),
  });
  return found;
}

/** Those of one kind, over many datagrams. */
export function only<Kind extends Submessage['kind']>(kind: Kind, datagrams: readonly Buffer[]): Extract<Submessage, { kind: Kind }>[] {
  return datagrams
    .flatMap((datagram) => dissect(datagram))
    .filter((entry): entry is Extract<Submessage, { kind: Kind }> => entry.kind === kind);
}
