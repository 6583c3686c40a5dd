import { type EndpointData, endpointPayload, participantPayload } from '../discovery/discovery-data.ts';
import { OWN_QOS, type Qos } from '../endpoints/qos.ts';
import { DISCOVERY_READERS, ENTITY, type EntityId, entityOf, type GuidPrefix, guidOf, type Locator, VENDOR } from '../wire/protocol.ts';
import { dissect } from './dissect.ts';
import { entity, message, sn, submessage, u16, u32 } from './octets.ts';
import { TOPIC } from './participants.ts';

/** Creates the datagrams of a participant that does not exist: announcements, samples and requests. */
export class ForgedParticipant {
  prefix: GuidPrefix;
  readonly #locator: Locator;
  readonly #user: Locator;
  readonly #next = new Map<EntityId, number>();
  #count = 0;

  /** The same number is the same participant. `user`: its locator for samples. */
  constructor(number: number, locator: Locator = { address: '10.0.0.99', port: 7410 }, user: Locator | null = null) {
    this.prefix = `0110${number.toString(16).padStart(20, '0')}`;
    this.#locator = locator;
    this.#user = user ?? { address: locator.address, port: locator.port + 1 };
  }

  /** A forged participant with the GUID prefix of another. */
  static named(prefix: GuidPrefix, locator?: Locator): ForgedParticipant {
    const forged = new ForgedParticipant(0, locator);
    forged.prefix = prefix;
    return forged;
  }

  /** An announcement of itself. */
  announcement(name = 'stranger', leaseSeconds = 100): Buffer {
    const payload = participantPayload(
      {
        prefix: this.prefix,
        vendor: VENDOR.CYCLONE_DDS,
        domain: 0,
        name,
        userData: '',
        leaseSeconds,
        metaUnicast: [this.#locator],
        userUnicast: [this.#user],
      },
      null,
    );
    return message(this.prefix, data(ENTITY.UNKNOWN, ENTITY.SPDP_WRITER, 1, payload));
  }

  /** DATA of one of its endpoints; `number`: its sequence number, by default the next one. */
  data(writer: EntityId, payload: Buffer, reader: EntityId = ENTITY.UNKNOWN, number?: number): Buffer {
    const next = number ?? (this.#next.get(writer) ?? 0) + 1;
    this.#next.set(writer, next);
    return message(this.prefix, data(reader, writer, next, payload));
  }

  /** An announcement of an endpoint. */
  endpoint(isWriter: boolean, key: number, changes: Partial<Pick<EndpointData, 'topic' | 'type' | 'userData'> & Qos> = {}): Buffer {
    const guid = this.guid(isWriter, key);
    const { topic, type, userData, ...qos } = { ...TOPIC, ...changes };
    const payload = endpointPayload({ topic, type, userData, guid, qos: { ...OWN_QOS, reliable: true, durability: 1, ...qos } }, 10);
    const [writer, reader] = isWriter
      ? [ENTITY.PUBLICATIONS_WRITER, ENTITY.PUBLICATIONS_READER]
      : [ENTITY.SUBSCRIPTIONS_WRITER, ENTITY.SUBSCRIPTIONS_READER];
    return this.data(writer, payload, reader);
  }

  guid(isWriter: boolean, key: number): string {
    return guidOf(this.prefix, (key << 8) | (isWriter ? 0x03 : 0x04));
  }

  heartbeat(writer: EntityId, first: number, last: number, reader: EntityId = ENTITY.UNKNOWN): Buffer {
    this.#count += 1;
    return message(this.prefix, submessage(0x07, [entity(reader), entity(writer), sn(first), sn(last), u32(this.#count)]));
  }

  /**
   * The answer of a real participant to a datagram: the acknowledgement that proves its reception. Null: the datagram needs no
   * acknowledgement.
   */
  answer(datagram: Buffer): Buffer | null {
    const answers = dissect(datagram, this.prefix).flatMap((part) => {
      const reader = part.kind === 'heartbeat' ? DISCOVERY_READERS.get(entityOf(part.sender)) : undefined;
      return part.kind === 'heartbeat' && reader ? [this.#acknowledges(reader, entityOf(part.sender), part.first)] : [];
    });
    return answers.length > 0 ? message(this.prefix, ...answers) : null;
  }

  /** Acknowledges all of a writer's changes below a number. */
  acknowledgement(reader: EntityId, writer: EntityId, base: number): Buffer {
    return message(this.prefix, this.#acknowledges(reader, writer, base));
  }

  #acknowledges(reader: EntityId, writer: EntityId, base: number): Buffer {
    this.#count += 1;
    return submessage(0x06, [entity(reader), entity(writer), sn(base), u32(0), u32(this.#count)], { flags: 2 });
  }

  /** Requests these 256 numbers of a writer. */
  request(reader: EntityId, writer: EntityId, base: number): Buffer {
    this.#count += 1;
    const all = Array.from({ length: 8 }, () => u32(0xffffffff));
    return message(this.prefix, submessage(0x06, [entity(reader), entity(writer), sn(base), u32(256), ...all, u32(this.#count)]));
  }
}

function data(reader: EntityId, writer: EntityId, number: number, payload: Buffer): Buffer {
  return submessage(0x15, [u16(0), u16(16), entity(reader), entity(writer), sn(number), payload], { flags: 4 });
}
