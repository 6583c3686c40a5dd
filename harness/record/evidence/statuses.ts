import type { ObservedSpan, ReliabilityEvidence } from '../../engine/evidence.ts';
import { CHANNELS, type Channel, type Received, type ServiceReading } from '../entries.ts';
import type { Interval } from './time-axis.ts';

/** A time stamp is remembered for at least this long and at most twice as long. The same stamp within this time is the same status. */
export const DISTINCT_SECONDS = 300;
/** If the clock was set back in the meantime, the same stamp this much later on the run's axis is a different status. */
const SAME_SECONDS = 2;
/** In sampling periods: a late joiner receives ten statuses again, which are older than five minutes at low rates. */
const DISTINCT_PERIODS = 20;
/** A status stamped up to this long after the clocks of its entry arrived while the entry was being written. */
const AHEAD_SECONDS = 10;
/** The next status follows within this many periods, or this many seconds if that is longer. */
const NEXT_PERIODS = 5;
const NEXT_SECONDS = 5;
/** A clock that differs by less than this is treated as the observer's own. */
const SKEW_MS = 500;

/** Determines when on the run's axis a status was stamped, and drops statuses that were already received. */
export class StatusDeduplicator {
  /** Maps time stamps to positions on the axis, in two generations; the older one is dropped as a whole. */
  #young = new Map<number, number>();
  #old = new Map<number, number>();
  #turned = Number.NEGATIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  /** When the clock was last set back. */
  #putBackAt = Number.NEGATIVE_INFINITY;
  duplicates = 0;
  outOfOrder = 0;

  /**
   * Calls `onDistinct` with the position of every status that was not received before. `remote`: the stamps come from another machine's
   * clock, whose offset is estimated from the shortest apparent delay.
   */
  add(received: Received, interval: Interval, remote: boolean, onDistinct: (at: number) => void): void {
    if (received.first === null) return;
    const window = Math.max(DISTINCT_SECONDS, DISTINCT_PERIODS / interval.hertz);
    this.#turn(interval.to, window);
    const [now = 0] = interval.wallOffsets;
    if (interval.wallOffsets.some((offset) => offset > now)) this.#putBackAt = interval.to;
    const isRepeating = interval.to - this.#putBackAt < 2 * window;
    const fastest = received.fastest_ms ?? 0;
    const skewMs = remote && Math.abs(fastest) > SKEW_MS ? fastest : 0;
    let stamp = received.first;
    this.#one(stamp, this.#positionOf(stamp + skewMs, interval), isRepeating, onDistinct);
    for (const step of received.steps) {
      stamp += step;
      this.#one(stamp, this.#positionOf(stamp + skewMs, interval), isRepeating, onDistinct);
    }
  }

  /** `isRepeating`: the clock was set back recently, so that the same stamps occur a second time. */
  #one(stamp: number, at: number, isRepeating: boolean, onDistinct: (at: number) => void): void {
    const before = this.#young.get(stamp) ?? this.#old.get(stamp);
    if (before !== undefined && (!isRepeating || at - before < SAME_SECONDS)) {
      this.duplicates++;
      return;
    }
    this.#young.set(stamp, at);
    // Stryker disable next-line EqualityOperator: two clocks may stamp statuses for the same moment; the count decides nothing
    if (at < this.#latest) this.outOfOrder++;
    else this.#latest = at;
    onDistinct(at);
  }

  /**
   * If the clock was set in the interval or shortly before it, a stamp may correspond to several positions. The position right after the
   * previous status is used, or else the latest one in or before the interval. A stamp that matches no clock is placed at the end.
   */
  #positionOf(stampMs: number, { hertz, to, wallOffsets }: Interval): number {
    const positions = wallOffsets.map((offset) => Math.round(stampMs - offset * 1000) / 1000);
    const next = this.#latest + Math.max(NEXT_SECONDS, NEXT_PERIODS / hertz);
    const following = positions.filter((at) => at > this.#latest && at <= Math.min(next, to));
    if (following.length > 0) return Math.min(...following);
    const before = positions.filter((at) => at <= to);
    if (before.length > 0) return Math.max(...before);
    const ahead = positions.filter((at) => at <= to + AHEAD_SECONDS);
    return ahead.length > 0 ? Math.min(...ahead) : to;
  }

  #turn(now: number, window: number): void {
    if (now - this.#turned < window) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#turned = now;
  }
}

/** Time stamps have millisecond resolution, the boot-time clock hundredths of a second (/proc/uptime). */
const ROUNDING_SECONDS = 0.02;
/** Tolerance for rounding in sums of clock differences, in samples. */
const ROUNDING_SAMPLES = 1e-3;

interface ChannelCount {
  /** Distinct statuses stamped since the start of the span, and among them those stamped after its last interval. */
  count: number;
  ahead: number;
  /** Time without a subscription. */
  unsubscribedSeconds: number;
}

interface Span {
  readonly from: number;
  to: number;
  awakeSeconds: number;
  readonly hertz: number;
  /** If not 0, the span consists of one interval, part of which the observer missed. */
  readonly stalledSeconds: number;
  readonly channels: Readonly<Record<Channel, ChannelCount>>;
}

interface Tally {
  readonly expected: number;
  readonly received: number;
  readonly unobserved: number;
}

/**
 * Observed spans and the samples expected in each: ⌊rate × time awake⌋, which is also the most that can be received. An interval in which
 * the observer itself was stalled is a separate span, so that statuses that arrive late after it do not hide a loss elsewhere.
 */
export class ObservedSpans {
  readonly #spans: Span[] = [];

  /** Opens or extends the span that contains the interval. */
  add(interval: Interval): void {
    const last = this.#spans.at(-1);
    const { from, to, awakeSeconds, hertz, stalledSeconds } = interval;
    if (last !== undefined && !interval.fresh && stalledSeconds === 0 && last.stalledSeconds === 0 && last.hertz === hertz) {
      last.to = to;
      last.awakeSeconds += awakeSeconds;
      // Statuses stamped after the previous entry belong to this interval.
      for (const counted of Object.values(last.channels)) counted.ahead = 0;
      return;
    }
    const none = (): ChannelCount => ({ count: 0, ahead: 0, unsubscribedSeconds: 0 });
    this.#spans.push({ from, to, awakeSeconds, hertz, stalledSeconds, channels: { topic: none(), events: none() } });
  }

  /** Counts a distinct status that arrived in the last interval and is stamped at `at`. */
  count(channel: Channel, at: number): void {
    // Allocates nothing per status, because a week has a million of them.
    let index = this.#spans.length - 1;
    while (index >= 0 && at < (this.#spans[index] as Span).from - ROUNDING_SECONDS) index--;
    const span = this.#spans[index];
    if (span === undefined) return;
    span.channels[channel].count++;
    if (at > span.to + ROUNDING_SECONDS) span.channels[channel].ahead++;
  }

  unsubscribed(channel: Channel, awakeSeconds: number): void {
    const last = this.#spans.at(-1);
    if (last !== undefined) last.channels[channel].unsubscribedSeconds += awakeSeconds;
  }

  /** The spans without the stalls; adjacent ones are joined. */
  merged(): ObservedSpan[] {
    const merged: { from: number; to: number; awakeSeconds: number }[] = [];
    for (const { from, to, awakeSeconds, stalledSeconds } of this.#spans) {
      const end = Math.max(from, to - stalledSeconds);
      const last = merged.at(-1);
      if (last !== undefined && last.to === from) {
        last.to = end;
        last.awakeSeconds += awakeSeconds;
      } else if (end > from) merged.push({ from, to: end, awakeSeconds });
    }
    return merged;
  }

  /** Stalls of the observer, placed at the end of the minute that reports them. */
  stalls(): { from: number; to: number }[] {
    const stalled = this.#spans.filter(({ stalledSeconds }) => stalledSeconds > 0);
    return stalled.map(({ from, to, stalledSeconds }) => ({ from: Math.max(from, to - stalledSeconds), to }));
  }

  tally(channel: Channel): Tally {
    let [expected, received, unobserved] = [0, 0, 0];
    for (const { awakeSeconds, hertz, channels } of this.#spans) {
      const { count, ahead, unsubscribedSeconds } = channels[channel];
      const samples = Math.floor(awakeSeconds * hertz + ROUNDING_SAMPLES);
      const got = Math.min(samples, count - ahead);
      expected += samples;
      received += got;
      unobserved += Math.min(samples - got, Math.ceil(unsubscribedSeconds * hertz));
    }
    return { expected, received, unobserved };
  }
}

type Counted = Readonly<Record<Channel, number>>;

/** A shorter interval may lie between two readings. In a longer one without a reading, the service did not respond. */
const READ_WITHIN_SECONDS = 30;

/**
 * Where statuses were lost, according to differences of the service's own counters between readings of one run. In an interval in which the
 * service did not respond or was restarted, and in the one before it, everything missing counts as not sampled.
 */
export class Losses {
  /** The run of the last reading; the reading itself if the next one may be compared with it; and the statuses received since then. */
  #started: string | null = null;
  #counted: ServiceReading | null = null;
  // Stryker disable next-line ObjectLiteral: what was received before the first reading is compared with nothing
  #since = { topic: 0, events: 0 };
  /** Missing statuses of the previous interval that are not yet accounted for. */
  #before: Counted = { topic: 0, events: 0 };
  #missed = 0;
  #unpublished = 0;
  readonly #down = { topic: 0, events: 0 };
  readonly #handedOver = { topic: 0, events: 0 };
  readonly #received = { topic: 0, events: 0 };
  /** Statuses passed to the graph according to the service's counters; null if not counted. */
  published: number | null = null;

  add(interval: Interval, reading: ServiceReading | null, counts: Counted): void {
    if (interval.fresh) this.#counted = null;
    const expected = interval.awakeSeconds * interval.hertz;
    const missing = { topic: Math.max(0, expected - counts.topic), events: Math.max(0, expected - counts.events) };
    for (const channel of CHANNELS) this.#since[channel] += counts[channel];
    const restarted = reading !== null && this.#started !== null && this.#started !== reading.started;
    if (restarted || (reading === null && interval.monotonicSeconds >= READ_WITHIN_SECONDS)) {
      for (const channel of CHANNELS) this.#down[channel] += missing[channel] + this.#before[channel];
      this.#before = { topic: 0, events: 0 };
    } else this.#before = missing;
    if (reading === null) return;
    if (!restarted && this.#counted !== null) this.#compare(this.#counted, reading);
    this.#started = reading.started;
    this.#counted = reading;
    this.#since = { topic: 0, events: 0 };
  }

  /** The members add up to the expected statuses that were not received. */
  of(channel: Channel, { expected, received, unobserved }: Tally): ReliabilityEvidence['lost'] {
    let rest = expected - received - unobserved;
    const take = (count: number): number => {
      const taken = Math.min(rest, Math.max(0, Math.round(count)));
      rest -= taken;
      return taken;
    };
    const notSampled = take(this.#down[channel] + this.#missed);
    const notPublished = channel === 'topic' ? take(this.#unpublished) : 0;
    const notDelivered = take(this.#handedOver[channel] - this.#received[channel]);
    return { notSampled, notPublished, notDelivered, unknown: rest + unobserved };
  }

  #compare(before: ServiceReading, now: ServiceReading): void {
    const samples = now.samples - before.samples;
    this.#missed += Math.max(0, now.missed - before.missed);
    this.#handedOver.events += samples;
    this.#received.events += this.#since.events;
    if (now.published === null || before.published === null) return;
    const published = now.published - before.published;
    this.published = (this.published ?? 0) + published;
    this.#unpublished += Math.max(0, samples - published);
    this.#handedOver.topic += published;
    this.#received.topic += this.#since.topic;
  }
}
