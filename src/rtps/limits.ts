/**
 * Bounds of memory and work that remote hosts can cause. Any host on the network can send datagrams, and none of them is trusted; within
 * these bounds the worst effect is that other participants are not discovered.
 */
export const LIMITS = {
  /** Participants known at the same time; several times the robots of a large site. */
  participants: 1024,
  /** Unproven participants at one address; a host has at most 120 (9.6.1.3). */
  unprovenAtAddress: 128,
  /** Participants with the same GUID at different addresses: the genuine one, and forged ones. */
  participantsOfGuid: 16,
  /** Matched remote endpoints of one local endpoint. */
  matchedPerEndpoint: 1024,
  /** Matched remote endpoints of one participant, over all local endpoints: a process with many service clients has two for each. */
  matchedPerParticipant: 256,
  /** Matches in total. */
  matched: 4096,
  /** Longest lease; longer ones are shortened to it. */
  leaseSeconds: 300,
  /** Longest lease of an unproven participant. */
  unansweredLeaseSeconds: 15,
  /** Octets sent to an address without a proven participant, per octet received from it. */
  unprovenFactor: 3,
  /** Upper bound of the octets that may still be sent to such an address. */
  unprovenOctets: 4096,
  /** Datagrams sent to such an address in total; the count is reset after `unprovenSeconds` without one. */
  unprovenDatagrams: 10,
  unprovenSeconds: 30,
  /** Addresses for which these are counted. */
  unprovenAddresses: 4096,
  /**
   * A changed announcement of a participant that still responds at its former address counts after this time without the former one: longer
   * than the announcement periods of other implementations (Cyclone DDS: 30 s).
   */
  changeSeconds: 35,
  /** How long a participant in whose name something false was sent must confirm its presence. */
  suspicionSeconds: 600,
  /**
   * Sequence numbers further ahead of the last delivered one are believed only when no lower ones arrive: more than a publisher of 200 Hz
   * sends while the network fails for 20 seconds.
   */
  numbersAhead: 4096,
  /** The same for discovery: each challenge of the same implementation moves the numbers by up to 65,536, and several may be lost. */
  discoveryNumbersAhead: 1024 * 1024,
  /** Larger announcements are not kept for comparison, but parsed every time. */
  announcementOctets: 4096,
  /** Samples per remote writer that are buffered until an earlier one arrives. */
  bufferedSamples: 256,
  /** Octets in reorder buffers and reassembly, over all remote writers. */
  bufferedOctets: 8 * 1024 * 1024,
  /** Memory per buffered sample or fragment in addition to its octets. */
  bufferOverheadOctets: 384,
  /** Largest reassembled sample. */
  sampleOctets: 1024 * 1024,
  /** Fragments per sample; more would mean fragments smaller than any implementation sends. */
  sampleFragments: 8192,
  /** Incomplete samples per remote writer. */
  partialSamples: 8,
  /** Octets resent to one remote reader, at once and per second. */
  resendOctets: 512 * 1024,
  /** A missing sample is skipped after this many requests, but not before `unansweredSeconds` after the first. */
  unansweredRequests: 20,
  unansweredSeconds: 60,
  /** Octets of topic and type names and of user data. */
  nameOctets: 1024,
} as const;

/** A copy in memory of its own: a copy in the shared pool of Buffer would retain the whole pool slab. */
export function copyOf(octets: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(octets.length);
  octets.copy(copy);
  return copy;
}

/** Octets of buffered remote data, over all readers of a participant. */
export class OctetBudget {
  readonly #max: number;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get held(): number {
    return this.#held;
  }

  /** False: the budget does not suffice; nothing was taken. */
  take(octets: number): boolean {
    if (this.#held + octets > this.#max) return false;
    this.#held += octets;
    return true;
  }

  giveBack(octets: number): void {
    this.#held -= octets;
  }
}
