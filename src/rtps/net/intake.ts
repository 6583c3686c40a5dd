import { hrtime } from 'node:process';

/** Datagrams are handled at once, up to this time per turn of the event loop, so that a flood does not block everything else. */
const TURN_MS = 10;
/** Bounds of the queue for the next turns; beyond them datagrams are dropped, as they are when the kernel's buffer is full. */
const MAX_WAITING = 1024;
const MAX_WAITING_OCTETS = 4 * 1024 * 1024;

interface Waiting {
  readonly octets: number;
  readonly handle: () => void;
}

/** Spreads the handling of datagrams over turns of the event loop, in the order in which they came. */
export class Intake {
  readonly #nowMs: () => number;
  #waiting: Waiting[] = [];
  #waitingOctets = 0;
  #spentMs = 0;
  #turn: NodeJS.Immediate | null = null;

  constructor(nowMs: () => number = () => Number(hrtime.bigint()) / 1e6) {
    this.#nowMs = nowMs;
  }

  /** Handles a datagram now or in a later turn. False: the queue is full and the datagram was dropped. */
  take(octets: number, handle: () => void): boolean {
    if (this.#waiting.length === 0 && this.#spentMs < TURN_MS) {
      this.#handle(handle);
      return true;
    }
    if (this.#waiting.length >= MAX_WAITING || this.#waitingOctets + octets > MAX_WAITING_OCTETS) return false;
    this.#waiting.push({ octets, handle });
    this.#waitingOctets += octets;
    return true;
  }

  /** Discards the queue. */
  close(): void {
    if (this.#turn) clearImmediate(this.#turn);
    this.#turn = null;
    this.#waiting = [];
    this.#waitingOctets = 0;
  }

  #handle(handle: () => void): void {
    // Scheduled first, because `handle` may throw.
    this.#turn ??= setImmediate(() => this.#nextTurn());
    const began = this.#nowMs();
    try {
      handle();
    } finally {
      this.#spentMs += this.#nowMs() - began;
    }
  }

  #nextTurn(): void {
    this.#turn = null;
    this.#spentMs = 0;
    let taken = 0;
    for (; taken < this.#waiting.length && this.#spentMs < TURN_MS; taken += 1) {
      const { octets, handle } = this.#waiting[taken] as Waiting;
      this.#waitingOctets -= octets;
      this.#handle(handle);
      if (this.#waiting.length === 0) return; // `handle` has called `close`.
    }
    this.#waiting = this.#waiting.slice(taken);
  }
}
