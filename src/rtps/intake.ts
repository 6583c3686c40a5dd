import { hrtime } from 'node:process';

/** What comes is handled at once, but for no longer than this in one turn of the event loop: a flood must not hold up everything else. */
const TURN_MS = 10;
/** What waits for the next turn; beyond it datagrams are lost, as they are when the kernel's own buffer is full. */
const MOST_WAITING = 1024;
const MOST_WAITING_OCTETS = 4 * 1024 * 1024;

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

  /** Handles a datagram of so many octets, now or soon. False: too much waits, it is lost. */
  take(octets: number, handle: () => void): boolean {
    if (this.#waiting.length === 0 && this.#spentMs < TURN_MS) {
      this.#handle(handle);
      return true;
    }
    if (this.#waiting.length >= MOST_WAITING || this.#waitingOctets + octets > MOST_WAITING_OCTETS) return false;
    this.#waiting.push({ octets, handle });
    this.#waitingOctets += octets;
    return true;
  }

  /** What waits is forgotten. */
  close(): void {
    if (this.#turn) clearImmediate(this.#turn);
    this.#turn = null;
    this.#waiting = [];
    this.#waitingOctets = 0;
  }

  #handle(handle: () => void): void {
    // Told before it is handled, which may throw.
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
      if (this.#waiting.length === 0) return; // Closed meanwhile.
    }
    this.#waiting = this.#waiting.slice(taken);
  }
}
