import { copyOf, LIMITS } from '../limits.ts';
import type { DataFragSubmessage, DataSubmessage } from '../wire/message-reader.ts';
import { MAX_SET_BITS } from '../wire/number-set.ts';

interface Partial {
  /** The first fragment that arrived, with the properties of the sample. */
  head: DataFragSubmessage;
  readonly total: number;
  readonly fragments: Map<number, Buffer>;
  octets: number;
}

/** The memory budget: `take` may evict later samples in favour of an earlier one. */
export interface MemoryBudget {
  take(octets: number, sequenceNumber: number): boolean;
  giveBack(octets: number): void;
}

/** Whether a sample exceeds the limits of reassembly. */
export function isTooLarge({ sampleOctets, fragmentOctets }: DataFragSubmessage): boolean {
  return sampleOctets > LIMITS.sampleOctets || sampleOctets > LIMITS.sampleFragments * fragmentOctets;
}

/**
 * Reassembles the samples of one remote writer from fragments (8.4.14.1). Memory is allocated per received fragment, never for the
 * announced size of a sample.
 */
export class Reassembly {
  readonly #memory: MemoryBudget;
  readonly #partials = new Map<number, Partial>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** The highest number of an incomplete sample; 0: none. */
  get latest(): number {
    return Math.max(0, ...this.#partials.keys());
  }

  has(sequenceNumber: number): boolean {
    return this.#partials.has(sequenceNumber);
  }

  /** Adds the fragments of a submessage, whose sample must not be too large. Returns the sample once it is complete. */
  add(data: DataFragSubmessage): DataSubmessage | null {
    const { sequenceNumber, fragmentStart, fragmentCount, fragmentOctets, sampleOctets, payload } = data;
    const known = this.#partials.get(sequenceNumber);
    // When fragments contradict each other, the latest are used: the earlier ones may have been forged.
    if (known && (known.head.sampleOctets !== sampleOctets || known.head.fragmentOctets !== fragmentOctets)) this.drop(sequenceNumber);
    const partial = this.#partials.get(sequenceNumber) ?? this.#begin(data);
    if (!partial) return null;
    if (data.inlineQos && !partial.head.inlineQos) partial.head = { ...partial.head, inlineQos: data.inlineQos.detached() };
    for (let i = 0; i < fragmentCount; i += 1) {
      const number = fragmentStart + i;
      const length = number === partial.total ? sampleOctets - (partial.total - 1) * fragmentOctets : fragmentOctets;
      const part = payload.subarray(i * fragmentOctets, i * fragmentOctets + length);
      if (part.length < length) break; // The submessage is shorter than its fragment count.
      if (!partial.fragments.has(number)) {
        if (!this.#memory.take(length + LIMITS.bufferOverheadOctets, sequenceNumber)) break;
        partial.octets += length + LIMITS.bufferOverheadOctets;
      }
      partial.fragments.set(number, copyOf(part));
    }
    if (partial.fragments.size < partial.total) return null;
    const parts: Buffer[] = [];
    for (let number = 1; number <= partial.total; number += 1) parts.push(partial.fragments.get(number) as Buffer);
    this.drop(sequenceNumber);
    return { ...partial.head, payload: Buffer.concat(parts) };
  }

  /** Numbers of the missing fragments, at most as many as fit into one request. */
  missing(sequenceNumber: number): number[] {
    const partial = this.#partials.get(sequenceNumber);
    if (!partial) return [];
    const missing: number[] = [];
    for (let number = 1; number <= partial.total; number += 1) {
      if (partial.fragments.has(number)) continue;
      if (missing.length > 0 && number - (missing[0] as number) >= MAX_SET_BITS) break;
      missing.push(number);
    }
    return missing;
  }

  /** Discards an incomplete sample. */
  drop(sequenceNumber: number): void {
    const partial = this.#partials.get(sequenceNumber);
    if (!partial) return;
    this.#partials.delete(sequenceNumber);
    this.#memory.giveBack(partial.octets);
  }

  dropBelow(sequenceNumber: number): void {
    if (this.#partials.size === 0) return;
    for (const number of this.#partials.keys()) if (number < sequenceNumber) this.drop(number);
  }

  clear(): void {
    this.dropBelow(Number.POSITIVE_INFINITY);
  }

  #begin(data: DataFragSubmessage): Partial | null {
    if (this.#partials.size >= LIMITS.partialSamples) {
      // The earlier sample is kept, since the later ones cannot be delivered before it.
      if (this.latest <= data.sequenceNumber) return null;
      this.drop(this.latest);
    }
    const total = Math.ceil(data.sampleOctets / data.fragmentOctets);
    const partial: Partial = { head: { ...data, inlineQos: null, payload: Buffer.alloc(0) }, total, fragments: new Map(), octets: 0 };
    this.#partials.set(data.sequenceNumber, partial);
    return partial;
  }
}
