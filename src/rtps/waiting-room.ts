import { kept, LIMITS, type OctetBudget } from './limits.ts';
import type { DataFragSubmessage, DataSubmessage } from './message-reader.ts';
import type { Source } from './network.ts';
import { Reassembly } from './reassembly.ts';

/** What waits for an earlier sample; null: told to be irrelevant. */
type Waiting = { readonly data: DataSubmessage; readonly source: Source } | null;

/**
 * What came from one remote writer before its turn: samples, numbers that will never come, and samples of which parts are here. All of
 * it is counted on the budget of the participant; a sample nearer its turn takes memory from later ones, which are asked for again.
 */
export class WaitingRoom {
  readonly #budget: OctetBudget;
  readonly #waiting = new Map<number, Waiting>();
  readonly #partly: Reassembly;

  constructor(budget: OctetBudget) {
    this.#budget = budget;
    this.#partly = new Reassembly({
      take: (octets, number) => this.#take(octets, number),
      giveBack: (octets) => budget.giveBack(octets),
    });
  }

  has(number: number): boolean {
    return this.#waiting.has(number);
  }

  hasPart(number: number): boolean {
    return this.#partly.has(number);
  }

  /** Fragments that are missing of a sample that is partly here. */
  missingParts(number: number): number[] {
    return this.#partly.missing(number);
  }

  /** The whole sample when this was what was missing of it. */
  addPart(data: DataFragSubmessage): DataSubmessage | null {
    return this.#partly.add(data);
  }

  /** Keeps what is ahead of `next`, whose turn it is; false when there is no room. */
  put(number: number, what: Waiting, next: number): boolean {
    if (this.#waiting.has(number)) return true;
    if (number - next > LIMITS.waitingSamples || this.#waiting.size >= LIMITS.waitingSamples) return false;
    if (!this.#take(octetsOf(what), number)) return false;
    this.#waiting.set(number, what && withoutDatagram(what));
    this.#partly.drop(number);
    return true;
  }

  /** Hands out what waits under this number, and forgets it; undefined: nothing does. */
  remove(number: number): Waiting | undefined {
    this.#partly.drop(number);
    const what = this.#waiting.get(number);
    if (what === undefined) return undefined;
    this.#waiting.delete(number);
    this.#budget.giveBack(octetsOf(what));
    return what;
  }

  /** Numbers below this one that wait, ascending. */
  below(end: number): number[] {
    return [...this.#waiting.keys()].filter((number) => number < end).sort((a, b) => a - b);
  }

  dropPartsBelow(number: number): void {
    this.#partly.dropBelow(number);
  }

  clear(): void {
    this.#partly.clear();
    for (const number of this.#waiting.keys()) this.remove(number);
  }

  #take(octets: number, forNumber: number): boolean {
    while (!this.#budget.take(octets)) {
      const latest = Math.max(this.#partly.latest, ...this.#waiting.keys());
      if (latest <= forNumber) return false;
      this.remove(latest);
    }
    return true;
  }
}

function octetsOf(what: Waiting): number {
  return LIMITS.waitingOverheadOctets + (what?.data.payload?.length ?? 0);
}

/** The sample waits; the datagram's memory does not. */
function withoutDatagram({ data, source }: NonNullable<Waiting>): Waiting {
  return { source, data: { ...data, payload: data.payload && kept(data.payload), inlineQos: data.inlineQos?.detached() ?? null } };
}
