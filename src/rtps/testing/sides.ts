import type { Test } from 'tap';
import type { LocalWriter } from '../endpoints/endpoints.ts';
import type { ParticipantOptions } from '../participant.ts';
import { type MemoryNetwork, Wire, type WireOptions } from './memory-network.ts';
import { participantOn, readerOf, type TestParticipant, type TestReader, writerOf } from './participants.ts';
import { VirtualTime } from './virtual-time.ts';

/** A participant on a host of its own, with a writer and a reader of the topic. */
export interface Side {
  readonly network: MemoryNetwork;
  readonly participant: TestParticipant;
  readonly writer: LocalWriter;
  readonly reader: TestReader;
}

export interface Sides {
  readonly time: VirtualTime;
  readonly wire: Wire;
  side(address: string, options?: Partial<ParticipantOptions>): Side;
}

/** Hosts in one segment, in virtual time. */
export function sides(t: Test, options: WireOptions = {}): Sides {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire(options);
  return {
    time,
    wire,
    side: (address, more) => {
      const network = wire.host({ lan: address });
      const participant = participantOn(network, time.now, more);
      t.teardown(() => participant.stop());
      return { network, participant, writer: writerOf(participant), reader: readerOf(participant) };
    },
  };
}

export const write = ({ participant, writer }: Side, text: string): void => participant.write(writer, Buffer.from(text));
