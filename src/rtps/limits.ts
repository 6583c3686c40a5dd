/**
 * What strangers may make this participant keep and do. Every datagram is hostile until it is parsed, and anybody on the network may
 * send one; with these bounds the worst they can do is to keep others from being seen.
 */
export const LIMITS = {
  /** Participants known at once: a campus of robots, several times over. */
  participants: 1024,
  /** Matched remote endpoints of one local endpoint. */
  matchedPerEndpoint: 1024,
  /** Matched remote endpoints of one participant, over all local endpoints: a process of many service clients has two for each. */
  matchedPerParticipant: 256,
  /** Matches in all. */
  matched: 4096,
  /** Leases are cut to this: nobody stays without a word for longer. */
  leaseSeconds: 300,
  /** Those of participants that were only announced, and are not proven. */
  unansweredLeaseSeconds: 15,
  /** Octets that are sent to an address at which no participant is proven, for each that came in its name. */
  unprovenFactor: 3,
  /** Of these octets so many are saved up. */
  unprovenOctets: 4096,
  /** Datagrams that are sent to it in all, and of these to one from which nothing came; after so many seconds without one they begin anew. */
  unprovenDatagrams: 10,
  unheardDatagrams: 5,
  unprovenSeconds: 600,
  /** Addresses for which that is counted. */
  unprovenAddresses: 4096,
  /** A participant that is not proven keeps its identity from others who claim it for so long. */
  claimSeconds: 3,
  /** Numbers further ahead of what is known of a writer are believed only when it says so twice. */
  numbersAhead: 65_536,
  /** An announcement that is larger is read anew each time, instead of being kept to be compared. */
  announcementOctets: 4096,
  /** Samples that wait for an earlier one, of one remote writer. */
  waitingSamples: 256,
  /** Octets that wait so, or for further fragments, over all remote writers of the participant. */
  waitingOctets: 8 * 1024 * 1024,
  /** What each thing that waits takes beside its octets, at least. */
  waitingOverheadOctets: 384,
  /** One sample, reassembled. */
  sampleOctets: 1024 * 1024,
  /** Its fragments: more would be of fewer octets each than anybody sends. */
  sampleFragments: 8192,
  /** Samples under reassembly of one remote writer. */
  partialSamples: 8,
  /** Octets that one remote reader may have sent again at once, and per second. */
  resendOctets: 512 * 1024,
  /** A sample that never comes is given up after so many requests, and no sooner than so many seconds after the first. */
  unansweredRequests: 20,
  unansweredSeconds: 60,
  /** Octets of topic and type names and of user data. */
  nameOctets: 1024,
} as const;

/** A copy to be kept: in memory of its own, not in a slab that what is kept holds on to for all that comes and goes beside it. */
export function kept(octets: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(octets.length);
  octets.copy(copy);
  return copy;
}

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
