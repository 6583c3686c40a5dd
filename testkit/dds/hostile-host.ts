/** An attacker on a test network: it sends in the name of other participants and from the addresses of other hosts. Needs root. */
import { endOfInstance, participantKey, participantPayload } from '../../src/rtps/discovery/discovery-data.ts';
import { destinationOf } from '../../src/rtps/testing/dissect.ts';
import type { ForgedParticipant } from '../../src/rtps/testing/forged-participant.ts';
import { entity, message, type Part, sn, submessage, u16, u32 } from '../../src/rtps/testing/octets.ts';
import { ParameterWriter } from '../../src/rtps/wire/parameters.ts';
import {
  ENTITY,
  type EntityId,
  type Guid,
  type GuidPrefix,
  guidOf,
  type Locator,
  PID,
  ports,
  VENDOR,
} from '../../src/rtps/wire/protocol.ts';
import type { Host } from '../network/network.ts';
import { RawProgram } from '../network/raw-program.ts';
import { until } from '../wait.ts';

export const META = ports.metaUnicast(0, 0);
export const USER = ports.userUnicast(0, 0);
/** The writer of the health statuses is the second endpoint of a node of the embedded transport. */
export const HEALTH_WRITER = 0x203;
/** Maximum payload of UDP over IPv4. */
const LARGEST = 65_507;
/** Sequence numbers that no writer of a test reaches, within and beyond `LIMITS.numbersAhead`. */
const AHEAD = [5000, 60_000, 2 ** 40] as const;

/** A host that sends to one target, and receives at the ports of a participant and in the multicast group. */
export class HostileHost {
  readonly address: string;
  /** Datagrams that came from the target's address. */
  readonly received: Buffer[] = [];
  sent = 0;
  /** The last participant that sent from each address. */
  readonly announced = new Map<string, GuidPrefix>();
  readonly #target: string;
  readonly #program: RawProgram;
  readonly #answering = new Map<GuidPrefix, { readonly forged: ForgedParticipant; readonly from: string | null }>();

  constructor(host: Host, target: string) {
    this.address = host.addresses[0] as string;
    this.#target = target;
    this.#program = new RawProgram(host, 'send', String(META), String(USER), String(ports.metaMulticast(0)));
    void this.#receive();
  }

  /** Octets that are still to be sent. */
  get pendingOctets(): number {
    return this.#program.pendingOctets;
  }

  /** `from`: a forged source address; null: its own. */
  send(datagram: Buffer, port = META, from: string | null = null): void {
    // Mutations may leave nothing, or more than UDP can carry.
    if (datagram.length === 0 || datagram.length > LARGEST) return;
    this.sent += 1;
    this.#program.write(`${from ?? '-'} ${this.#target} ${port} ${datagram.toString('hex')}`);
  }

  /** The last participant that announced itself from an address. */
  prefixAt(address: string): Promise<GuidPrefix> {
    return until(`a participant announces itself from ${address}`, () => this.announced.get(address));
  }

  /** From now on it answers challenges of a participant like a real one; `from`: the source address of the answers. */
  answerAs(forged: ForgedParticipant, from: string | null = null): void {
    this.#answering.set(forged.prefix, { forged, from });
  }

  end(): void {
    this.#program.end();
  }

  async #receive(): Promise<void> {
    for (let line = await this.#program.read(); line !== undefined; line = await this.#program.read()) {
      const [source = '', octets] = line.split(' ');
      if (octets === undefined) continue;
      const datagram = Buffer.from(octets, 'hex');
      if (datagram.length >= 20) this.announced.set(source, datagram.toString('hex', 8, 20));
      const destination = destinationOf(datagram);
      if (source !== this.#target || destination === null) continue;
      this.received.push(datagram);
      const answering = this.#answering.get(destination);
      const answer = answering?.forged.answer(datagram);
      if (answer) this.send(answer, META, answering?.from);
    }
  }
}

/** An announcement of a participant with any locators. */
export function announcementOf(
  prefix: GuidPrefix,
  {
    meta,
    user = [],
    name = 'stranger',
    leaseSeconds = 100,
  }: Partial<{ user: Locator[]; name: string; leaseSeconds: number }> & { meta: Locator[] },
): Buffer {
  const data = { prefix, vendor: VENDOR.CYCLONE_DDS, domain: 0, name, userData: '', leaseSeconds, metaUnicast: meta, userUnicast: user };
  return dataOf(prefix, ENTITY.SPDP_WRITER, 9, [participantPayload(data, null)], 4);
}

function dataOf(prefix: GuidPrefix, writer: EntityId, number: number, parts: readonly Part[], flags: number): Buffer {
  return message(prefix, submessage(0x15, [u16(0), u16(16), entity(ENTITY.UNKNOWN), entity(writer), sn(number), ...parts], { flags }));
}

/** Datagrams that dispose of a participant: as this implementation sends it, as a key alone, and as status information alone. */
export function disposalsOf(prefix: GuidPrefix): Buffer[] {
  const end = endOfInstance(guidOf(prefix, ENTITY.PARTICIPANT));
  const key = participantKey(prefix);
  return [
    dataOf(prefix, ENTITY.SPDP_WRITER, 10, [end, key], 2 | 8),
    dataOf(prefix, ENTITY.SPDP_WRITER, 11, [key], 8),
    dataOf(prefix, ENTITY.SPDP_WRITER, 12, [end], 2),
  ];
}

/** Datagrams that dispose of an endpoint; the sequence number of its announcement is guessed. */
export function endpointDisposalsOf(guid: Guid, isWriter: boolean): Buffer[] {
  const prefix = guid.slice(0, 24);
  const writer = isWriter ? ENTITY.PUBLICATIONS_WRITER : ENTITY.SUBSCRIPTIONS_WRITER;
  const key = new ParameterWriter().guid(PID.ENDPOINT_GUID, guid).payload();
  return Array.from({ length: 40 }, (_, i) => dataOf(prefix, writer, 1 + i, [endOfInstance(guid), key], 2 | 8));
}

let count = 1_000_000;

export type Lies = Readonly<Record<string, readonly Buffer[]>>;

/** Everything that an attacker can say in the name of a participant, except the next sample of a writer. `own`: the attacker's locator. */
export function liesOf(prefix: GuidPrefix, own: Locator, genuine: Locator, writers = [HEALTH_WRITER], readers = [0x104]): Lies {
  const discovery = [ENTITY.PUBLICATIONS_WRITER, ENTITY.SUBSCRIPTIONS_WRITER];
  const all = [...discovery, ...writers];
  const ends = (writer: EntityId): Part[] => [entity(ENTITY.UNKNOWN), entity(writer)];
  const heartbeat = (writer: EntityId, first: number, last: number): Buffer => {
    count += 1;
    return message(prefix, submessage(0x07, [...ends(writer), sn(first), sn(last), u32(count)]));
  };
  const acknowledgement = (reader: EntityId, writer: EntityId, base: number): Buffer => {
    count += 1;
    return message(prefix, submessage(0x06, [entity(reader), entity(writer), sn(base), u32(0), u32(count)], { flags: 2 }));
  };
  const announced = (meta: Locator[], name: string, leaseSeconds: number): Buffer =>
    announcementOf(prefix, { meta, user: meta.map(({ address, port }) => ({ address, port: port + 1 })), name, leaseSeconds });
  return {
    disposals: disposalsOf(prefix),
    'disposals of endpoints': [
      ...writers.flatMap((writer) => endpointDisposalsOf(guidOf(prefix, writer), true)),
      ...readers.flatMap((reader) => endpointDisposalsOf(guidOf(prefix, reader), false)),
    ],
    "the attacker's locators": [announced([own], '', 100), announced([own, genuine], '', 100), announced([genuine, own], '', 100)],
    'a lease of a second': [announced([genuine], '', 1)],
    'a lease of nothing': [announced([genuine], '', 0)],
    'another name': [announced([genuine], 'stranger', 100)],
    'heartbeats far ahead': all.flatMap((writer) =>
      AHEAD.flatMap((to) => Array.from({ length: 10 }, (_, i) => heartbeat(writer, to + i, to + i))),
    ),
    'heartbeats that end far ahead': all.flatMap((writer) => AHEAD.map((to) => heartbeat(writer, 1, to))),
    gaps: all.flatMap((writer) => AHEAD.map((to) => message(prefix, submessage(0x08, [...ends(writer), sn(1), sn(to), u32(0)])))),
    acknowledgements: readers
      .flatMap((reader): [EntityId, EntityId][] => [
        [reader, HEALTH_WRITER],
        [ENTITY.PUBLICATIONS_READER, ENTITY.PUBLICATIONS_WRITER],
        [ENTITY.SUBSCRIPTIONS_READER, ENTITY.SUBSCRIPTIONS_WRITER],
      ])
      .flatMap(([reader, writer]) => [0, 1, 2, 3, 30_000, ...AHEAD].map((base) => acknowledgement(reader, writer, base))),
    'samples far ahead': writers.flatMap((writer) =>
      AHEAD.map((to) => dataOf(prefix, writer, to, [Buffer.from([0, 1, 0, 0]), Buffer.alloc(64)], 4)),
    ),
  };
}
