import type { ReliabilityEvidence } from '../../engine/evidence.ts';
import type { ServiceReading } from '../entries.ts';
import type { Tally } from './spans.ts';
import type { Stretch } from './stretch.ts';
import { WAYS, type Way } from './way.ts';

type Counted = Readonly<Record<Way, number>>;

/**
 * Where statuses were lost, as far as the service's own counters tell: those of two readings of one run, a stretch apart. In a stretch
 * in which the service did not answer or was restarted, and in the one before, all that is missing was not sampled.
 */
export class Losses {
  #reading: ServiceReading | null = null;
  /** What was missing in the stretch before, if it is not accounted for yet. */
  #before: Counted = { topic: 0, events: 0 };
  #missed = 0;
  #unpublished = 0;
  readonly #down = { topic: 0, events: 0 };
  readonly #handed = { topic: 0, events: 0 };
  readonly #heard = { topic: 0, events: 0 };
  /** Statuses that the counters say were handed to the graph; null: they do not tell. */
  published: number | null = null;

  add(stretch: Stretch, reading: ServiceReading | null, counts: Counted): void {
    const before = stretch.fresh ? null : this.#reading;
    const expected = stretch.awakeSeconds * stretch.hertz;
    const missing = { topic: Math.max(0, expected - counts.topic), events: Math.max(0, expected - counts.events) };
    const restarted = this.#reading !== null && reading !== null && this.#reading.started !== reading.started;
    if (reading === null || restarted) {
      for (const way of WAYS) this.#down[way] += missing[way] + this.#before[way];
      this.#before = { topic: 0, events: 0 };
    } else {
      if (before !== null) this.#compare(before, reading, counts);
      this.#before = missing;
    }
    if (reading !== null) this.#reading = reading;
  }

  /** Sums up to what was expected and not received. */
  of(way: Way, { expected, received, unheard }: Tally): ReliabilityEvidence['lost'] {
    let rest = expected - received - unheard;
    const take = (count: number): number => {
      const taken = Math.min(rest, Math.max(0, Math.round(count)));
      rest -= taken;
      return taken;
    };
    const notSampled = take(this.#down[way] + this.#missed);
    const notPublished = way === 'topic' ? take(this.#unpublished) : 0;
    const notDelivered = way === 'events' || this.published !== null ? take(this.#handed[way] - this.#heard[way]) : 0;
    return { notSampled, notPublished, notDelivered, unknown: rest + unheard };
  }

  #compare(before: ServiceReading, now: ServiceReading, counts: Counted): void {
    const samples = now.samples - before.samples;
    this.#missed += Math.max(0, now.missed - before.missed);
    this.#handed.events += samples;
    this.#heard.events += counts.events;
    if (now.published === null || before.published === null) return;
    const published = now.published - before.published;
    this.published = (this.published ?? 0) + published;
    this.#unpublished += Math.max(0, samples - published);
    this.#handed.topic += published;
    this.#heard.topic += counts.topic;
  }
}
