import type { ReliabilityEvidence } from '../../engine/evidence.ts';
import type { ServiceReading } from '../entries.ts';
import type { Tally } from './spans.ts';
import type { Stretch } from './stretch.ts';
import { WAYS, type Way } from './way.ts';

type Counted = Readonly<Record<Way, number>>;

/** A stretch that is shorter may lie between two readings; in a longer one without any the service did not answer. */
const READ_WITHIN_SECONDS = 30;

/**
 * Where statuses were lost, as far as the service's own counters tell, by their differences between readings of one run. In a stretch
 * in which the service did not answer or was restarted, and in the one before, all that is missing was not sampled.
 */
export class Losses {
  /** The run of the last reading; the reading itself, where the next may be compared with it; what was heard since. */
  #started: string | null = null;
  #counted: ServiceReading | null = null;
  #since = { topic: 0, events: 0 };
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
    if (stretch.fresh) this.#counted = null;
    const expected = stretch.awakeSeconds * stretch.hertz;
    const missing = { topic: Math.max(0, expected - counts.topic), events: Math.max(0, expected - counts.events) };
    for (const way of WAYS) this.#since[way] += counts[way];
    const restarted = reading !== null && this.#started !== null && this.#started !== reading.started;
    if (restarted || (reading === null && stretch.monotonicSeconds >= READ_WITHIN_SECONDS)) {
      for (const way of WAYS) this.#down[way] += missing[way] + this.#before[way];
      this.#before = { topic: 0, events: 0 };
    } else this.#before = missing;
    if (reading === null) return;
    if (!restarted && this.#counted !== null) this.#compare(this.#counted, reading);
    this.#started = reading.started;
    this.#counted = reading;
    this.#since = { topic: 0, events: 0 };
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
    const notDelivered = take(this.#handed[way] - this.#heard[way]);
    return { notSampled, notPublished, notDelivered, unknown: rest + unheard };
  }

  #compare(before: ServiceReading, now: ServiceReading): void {
    const samples = now.samples - before.samples;
    this.#missed += Math.max(0, now.missed - before.missed);
    this.#handed.events += samples;
    this.#heard.events += this.#since.events;
    if (now.published === null || before.published === null) return;
    const published = now.published - before.published;
    this.published = (this.published ?? 0) + published;
    this.#unpublished += Math.max(0, samples - published);
    this.#handed.topic += published;
    this.#heard.topic += this.#since.topic;
  }
}
