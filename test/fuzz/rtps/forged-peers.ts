import { PARTICIPANT_ENTITIES_INFO, SAFE_SHUTDOWN } from '../../../src/ros/interfaces.generated.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { entity, message, type Part, sn, submessage, u16, u32 } from '../../../src/rtps/testing/octets.ts';
import type { Target } from './mutations.ts';

const PEERS = 12;
/** Number of datagrams after which a forged peer has answered its challenge, so that its endpoints are read. */
const ENDPOINTS_AFTER = 3;
/** The endpoints that they announce, which match those of the session. */
const ENDPOINTS = [
  { isWriter: false, key: 1, names: {} },
  { isWriter: true, key: 2, names: {} },
  { isWriter: false, key: 3, names: { topic: 'ros_discovery_info', type: PARTICIPANT_ENTITIES_INFO.ddsName } },
  { isWriter: false, key: 4, names: { topic: 'rr/safe_shutdownReply', type: SAFE_SHUTDOWN.response.ddsName, userData: 'clientid=1;' } },
  { isWriter: true, key: 5, names: { topic: 'rq/safe_shutdownRequest', type: SAFE_SHUTDOWN.request.ddsName, userData: 'clientid=1;' } },
  { isWriter: true, key: 6, names: { topic: 'rt/robot9/health_status' } },
] as const;

/** Participants whose announcements are correct, and whose acknowledgements, heartbeats and samples are arbitrary. */
export class ForgedPeers {
  readonly #random: () => number;
  readonly #target: Target;
  readonly #payloads: readonly Buffer[];
  readonly #peers: { readonly forged: ForgedParticipant; turns: number }[] = [];

  /** `payloads`: contents of the samples that are not noise. */
  constructor(random: () => number, target: Target, payloads: readonly Buffer[]) {
    this.#random = random;
    this.#target = target;
    this.#payloads = payloads;
  }

  /** Their next datagram, or several: a new peer announces itself, and its endpoints after it was challenged. */
  next(): Buffer[] {
    const i = this.#below(PEERS);
    const known = this.#peers[i];
    if (!known || this.#random() < 0.001) {
      const forged = new ForgedParticipant(this.#below(2 ** 32), { address: `10.0.0.${100 + i}`, port: 7410 });
      this.#peers[i] = { forged, turns: 0 };
      return [forged.announcement()];
    }
    const { forged } = known;
    known.turns += 1;
    if (known.turns === ENDPOINTS_AFTER) return ENDPOINTS.map(({ isWriter, key, names }) => forged.endpoint(isWriter, key, names));
    return [message(forged.prefix, ...Array.from({ length: 1 + this.#below(4) }, () => this.#submessage()))];
  }

  #submessage(): Buffer {
    const own = ENDPOINTS[this.#below(ENDPOINTS.length)] as (typeof ENDPOINTS)[number];
    const ownEntity = entity((own.key << 8) | (own.isWriter ? 3 : 4));
    const number = this.#number();
    const count = u32(this.#below(2 ** 31));
    const flags = this.#random() < 0.5 ? 0 : 2;
    if (!own.isWriter) {
      const theirs = entity(this.#one(this.#target.writers));
      if (this.#random() < 0.7) return submessage(0x06, [ownEntity, theirs, sn(number), ...this.#set(), count], { flags });
      return submessage(0x12, [ownEntity, theirs, sn(number), u32(1 + this.#below(9)), ...this.#set(), count]);
    }
    const theirs = entity(this.#random() < 0.5 ? 0 : this.#one(this.#target.readers));
    const ends = [theirs, ownEntity];
    switch (this.#below(5)) {
      case 0:
        return submessage(0x07, [...ends, sn(number), sn(number + this.#number() - 1), count], { flags });
      case 1:
        return submessage(0x08, [...ends, sn(number), sn(number + this.#number()), ...this.#set()]);
      case 2:
        return submessage(0x13, [...ends, sn(number), u32(this.#below(99)), count]);
      case 3: {
        const octets = 1 + this.#below(this.#random() < 0.1 ? 3 : 1400);
        const total = 1 + this.#below(8);
        const size = octets * total - this.#below(octets);
        const fragment = [u32(1 + this.#below(total)), u16(1), u16(octets), u32(this.#random() < 0.05 ? this.#below(2 ** 31) : size)];
        return submessage(0x16, [u16(0), u16(28), ...ends, sn(number), ...fragment, this.#payload(octets)]);
      }
      default:
        return submessage(0x15, [u16(0), u16(16), ...ends, sn(number), this.#payload(this.#below(500))], { flags: 4 });
    }
  }

  /** Bits and words of a set. */
  #set(): Part[] {
    const bits = this.#below(this.#random() < 0.5 ? 20 : 257);
    return [u32(bits), ...Array.from({ length: (bits + 31) >> 5 }, () => u32(this.#below(2 ** 32)))];
  }

  /** Mostly a small number, because those exist. */
  #number(): number {
    const kind = this.#random();
    if (kind < 0.8) return 1 + this.#below(30);
    return kind < 0.97 ? 1 + this.#below(2000) : this.#below(2 ** 40);
  }

  #payload(octets: number): Buffer {
    if (this.#random() < 0.5) return this.#one(this.#payloads);
    return Buffer.from(Array.from({ length: octets }, (_, i) => (i === 1 ? 1 : i < 4 ? 0 : this.#below(256))));
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  #one<T>(list: readonly T[]): T {
    return list[this.#below(list.length)] as T;
  }
}
