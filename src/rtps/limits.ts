/**
 * What strangers may make this participant keep and do. Every datagram is hostile until it is parsed, and anybody on the network may
 * send one; with these bounds the worst they can do is to keep others from being seen.
 */
export const LIMITS = {
  /** Participants known at once: a campus of robots, several times over. */
  participants: 512,
  /** Matched remote endpoints of one local endpoint. */
  matchedPerEndpoint: 512,
  /** Matched remote endpoints of one participant, over all local endpoints. */
  matchedPerParticipant: 64,
  /** Leases are cut to this: nobody stays without a word for longer. */
  leaseSeconds: 300,
  /** Samples that wait for an earlier one, of one remote writer. */
  waitingSamples: 256,
  /** Octets that wait so, or for further fragments, over all remote writers of the participant. */
  waitingOctets: 8 * 1024 * 1024,
  /** One sample, reassembled. */
  sampleOctets: 1024 * 1024,
  /** Samples under reassembly of one remote writer. */
  partialSamples: 8,
  /** Octets that one remote reader may have sent again at once, and per second. */
  resendOctets: 512 * 1024,
  /** Requests for a sample that never comes, before it is given up. */
  unansweredRequests: 60,
  /** Octets of topic and type names and of user data. */
  nameOctets: 1024,
} as const;

/** Octets of strangers that are held, counted over all readers of a participant. */
export class OctetBudget {
  readonly #most: number;
  #held = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get held(): number {
    return this.#held;
  }

  /** False: there is no room; nothing was taken. */
  take(octets: number): boolean {
    if (this.#held + octets > this.#most) return false;
    this.#held += octets;
    return true;
  }

  giveBack(octets: number): void {
    this.#held -= octets;
  }
}
