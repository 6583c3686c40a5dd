import { hrtime } from 'node:process';

/** The source address of a datagram, as reported by the kernel. */
export interface Source {
  readonly address: string;
  readonly port: number;
}

export interface DatagramHandler {
  /** `viaMulticast`: received on the group's port. */
  onDatagram(datagram: Buffer, source: Source, viaMulticast: boolean): void;
  /** Whether the sender that a datagram names is a participant proven at the datagram's source address. */
  isFromProven(datagram: Buffer, source: Source): boolean;
  /** A datagram was dropped unread, because its address exceeds its share, or too many are waiting. */
  onDropped(source: Source): void;
  onProblem(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** The handle of a socket, whose reading can be suspended. */
export interface Reading {
  recvStart(): void;
  recvStop(): void;
}

/** Longest time for which datagrams are handled in one turn of the event loop, so that a flood does not block everything else. */
const TURN_MS = 10;
/** Bounds of the queues; beyond them datagrams are dropped, as they are when the kernel's buffer is full. */
const MAX_QUEUED = 1024;
const MAX_QUEUED_OCTETS = 4 * 1024 * 1024;
/** Of unproven senders fewer than participants: one would be removed before its response to the challenge is handled. */
const MAX_QUEUED_UNPROVEN = 512;
/** At or above this many datagrams per second, reading is suspended after each turn for this long, so that the next turn reads several. */
const SUSPEND_FROM_HERTZ = 50;
/** Shorter than FIRST_RETRY_SECONDS of the readers, after which they repeat a request. */
const SUSPEND_MS = 50;
/** The pause is shorter at rates at which more than this is expected after it: it waits in the kernel's buffer of 200 kB. */
const BATCH = 32;
const BATCH_OCTETS = 32 * 1024;
/** The rate is measured over at least this time. */
const RATE_MS = 1000;
/** Milliseconds per second for unproven senders together, and for the excess of proven ones. With half of this, 300 robots joined later. */
const UNPROVEN_SHARE = 500;
const EXCESS_SHARE = 500;
/** A queue that has used up its share is continued after this time. */
const WAIT_MS = 10;
/**
 * Share of an address per second. A datagram costs 1, and 1 more per OCTETS_PER_COST, since longer ones contain more submessages; the time
 * that it takes is no measure, because on a busy machine this process is interrupted meanwhile.
 */
const ADDRESS_SHARE = 1000;
const OCTETS_PER_COST = 150;
/** Addresses whose costs are recorded; beyond them the record begins again. */
const MAX_ADDRESSES = 1024;

/** An amount per second, of which as much can be saved up. */
class Share {
  readonly perSecond: number;
  #left: number;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.perSecond = perSecond;
    this.#left = perSecond;
    this.#atMs = nowMs;
  }

  isLeft(nowMs: number): boolean {
    this.#left = Math.min(this.#left + ((nowMs - this.#atMs) / 1000) * this.perSecond, this.perSecond);
    this.#atMs = nowMs;
    return this.#left > 0;
  }

  spend(amount: number): void {
    this.#left -= amount;
  }
}

interface QueuedDatagram {
  readonly datagram: Buffer;
  readonly source: Source;
  readonly isGroup: boolean;
}

/** Datagrams that are handled in later turns, in the order in which they came. */
class Queue {
  /** Milliseconds. */
  readonly share: Share;
  readonly #max: number;
  #datagrams: QueuedDatagram[] = [];
  #octets = 0;

  constructor(share: number, max: number, nowMs: number) {
    this.share = new Share(share, nowMs);
    this.#max = max;
  }

  get isEmpty(): boolean {
    return this.#datagrams.length === 0;
  }

  /** False: the queue is full. */
  add(queued: QueuedDatagram): boolean {
    const { length } = queued.datagram;
    if (this.#datagrams.length >= this.#max || this.#octets + length > MAX_QUEUED_OCTETS) return false;
    this.#datagrams.push(queued);
    this.#octets += length;
    return true;
  }

  /** Removes the first datagrams, until `handle` returns false. */
  drain(handle: (queued: QueuedDatagram) => boolean): void {
    let taken = 0;
    try {
      for (let isGoingOn = true; isGoingOn && taken < this.#datagrams.length; ) {
        const queued = this.#datagrams[taken] as QueuedDatagram;
        taken += 1;
        this.#octets -= queued.datagram.length;
        isGoingOn = handle(queued);
      }
    } finally {
      this.#datagrams = this.#datagrams.slice(taken);
    }
  }

  clear(): void {
    this.#datagrams = [];
    this.#octets = 0;
  }
}

/**
 * Decides when datagrams are handled. Few are handled at once. Many are read in batches: most of the cost of a single one is the wake-up
 * and cold caches, so 300 robots at 1 Hz take four tenths less CPU time. Of many, those of proven participants are handled at once as far
 * as their address does not exceed its share, so that a flood delays them little; all others wait in queues that have shares of their own.
 */
export class Intake {
  readonly #handler: Omit<DatagramHandler, 'onProblem'>;
  readonly #nowMs: () => number;
  readonly #readings: Reading[] = [];
  /** Continues reading; null: it is not suspended. */
  #resume: NodeJS.Timeout | null = null;
  #hertz = 0;
  #octetsPerSecond = 0;
  #counted = 0;
  #countedOctets = 0;
  #countedSinceMs = 0;
  #inTurn = 0;
  #inTurnOctets = 0;
  #spentMs = 0;
  #turn: NodeJS.Immediate | null = null;
  #later: NodeJS.Timeout | null = null;
  /** Of proven senders; of those beyond the share of their address; of unproven senders. */
  readonly #proven: Queue;
  readonly #excess: Queue;
  readonly #unproven: Queue;
  readonly #queues: readonly Queue[];
  readonly #sharesOfProven = new Map<string, Share>();
  readonly #sharesOfUnproven = new Map<string, Share>();

  constructor(handler: Omit<DatagramHandler, 'onProblem'>, nowMs: () => number = () => Number(hrtime.bigint()) / 1e6) {
    this.#handler = handler;
    this.#nowMs = nowMs;
    const now = nowMs();
    this.#proven = new Queue(1000, MAX_QUEUED, now);
    this.#excess = new Queue(EXCESS_SHARE, MAX_QUEUED, now);
    this.#unproven = new Queue(UNPROVEN_SHARE, MAX_QUEUED_UNPROVEN, now);
    this.#queues = [this.#proven, this.#excess, this.#unproven];
  }

  /** Adds a socket from which datagrams are taken. */
  addReading(reading: Reading): void {
    this.#readings.push(reading);
  }

  /** Handles a datagram now or in a later turn, or drops it. */
  take(datagram: Buffer, source: Source, isGroup: boolean): void {
    this.#counted += 1;
    this.#countedOctets += datagram.length;
    this.#inTurn += 1;
    this.#inTurnOctets += datagram.length;
    const isTurnLeft = this.#spentMs < TURN_MS;
    const areMany = this.#hertz >= SUSPEND_FROM_HERTZ || this.#counted > SUSPEND_FROM_HERTZ;
    if (!areMany && isTurnLeft && this.#queues.every(({ isEmpty }) => isEmpty)) {
      this.#handle(datagram, source, isGroup);
      return;
    }
    const isProven = this.#handler.isFromProven(datagram, source);
    const isWithinShare = this.#spend(datagram, source, isProven);
    if (isProven && isWithinShare && isTurnLeft && this.#proven.isEmpty) {
      this.#handle(datagram, source, isGroup);
      return;
    }
    // Scheduled also for a dropped datagram, because reading is suspended at the end of a turn.
    this.#turn ??= setImmediate(() => this.#nextTurn());
    const queue = isProven ? (isWithinShare ? this.#proven : this.#excess) : isWithinShare ? this.#unproven : null;
    if (!queue?.add({ datagram, source, isGroup })) this.#handler.onDropped(source);
  }

  /** Discards the queues. */
  close(): void {
    if (this.#turn) clearImmediate(this.#turn);
    for (const timer of [this.#later, this.#resume]) if (timer) clearTimeout(timer);
    this.#turn = null;
    this.#later = null;
    this.#resume = null;
    this.#readings.length = 0;
    for (const queue of this.#queues) queue.clear();
  }

  /** False: the share of the address is used up. */
  #spend({ length }: Buffer, { address }: Source, isProven: boolean): boolean {
    const shares = isProven ? this.#sharesOfProven : this.#sharesOfUnproven;
    const now = this.#nowMs();
    let share = shares.get(address);
    if (!share) {
      if (shares.size >= MAX_ADDRESSES) shares.clear();
      share = new Share(ADDRESS_SHARE, now);
      shares.set(address, share);
    }
    const isLeft = share.isLeft(now);
    if (isLeft) share.spend(1 + length / OCTETS_PER_COST);
    return isLeft;
  }

  /** Returns the milliseconds that it took. */
  #handle(datagram: Buffer, source: Source, isGroup: boolean): number {
    // Scheduled first, because the handler may throw.
    this.#turn ??= setImmediate(() => this.#nextTurn());
    const began = this.#nowMs();
    let ms = 0;
    try {
      this.#handler.onDatagram(datagram, source, isGroup);
    } finally {
      ms = this.#nowMs() - began;
      this.#spentMs += ms;
    }
    return ms;
  }

  #suspend(): void {
    const now = this.#nowMs();
    const measuredMs = now - this.#countedSinceMs;
    if (measuredMs >= RATE_MS) {
      this.#hertz = (this.#counted * 1000) / measuredMs;
      this.#octetsPerSecond = (this.#countedOctets * 1000) / measuredMs;
      this.#counted = 0;
      this.#countedOctets = 0;
      this.#countedSinceMs = now;
    }
    const isMoreWaiting = this.#inTurn >= BATCH || this.#inTurnOctets >= BATCH_OCTETS;
    this.#inTurn = 0;
    this.#inTurnOctets = 0;
    if (this.#hertz < SUSPEND_FROM_HERTZ || isMoreWaiting || this.#resume) return;
    for (const reading of this.#readings) reading.recvStop();
    this.#resume = setTimeout(
      () => {
        this.#resume = null;
        for (const reading of this.#readings) reading.recvStart();
      },
      Math.min(SUSPEND_MS, (1000 * BATCH) / this.#hertz, (1000 * BATCH_OCTETS) / this.#octetsPerSecond),
    );
  }

  #nextTurn(): void {
    this.#turn = null;
    this.#suspend();
    this.#spentMs = 0;
    let isUsedUp = false;
    for (const queue of this.#queues) {
      if (!queue.isEmpty) this.#drain(queue);
      if (queue.isEmpty) continue;
      if (queue.share.isLeft(this.#nowMs())) this.#turn ??= setImmediate(() => this.#nextTurn());
      else isUsedUp = true;
    }
    if (!isUsedUp) return;
    this.#later ??= setTimeout(() => {
      this.#later = null;
      this.#turn ??= setImmediate(() => this.#nextTurn());
    }, WAIT_MS);
  }

  #drain(queue: Queue): void {
    let leftMs = (TURN_MS * queue.share.perSecond) / 1000;
    if (!queue.share.isLeft(this.#nowMs())) return;
    queue.drain(({ datagram, source, isGroup }) => {
      const ms = this.#handle(datagram, source, isGroup);
      queue.share.spend(ms);
      leftMs -= ms;
      return leftMs > 0;
    });
  }
}
