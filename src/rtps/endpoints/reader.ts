import { LIMITS, type OctetBudget } from '../limits.ts';
import type { Source } from '../net/network.ts';
import type { DataFragSubmessage, DataSubmessage, GapSubmessage, HeartbeatSubmessage } from '../wire/message-reader.ts';
import { MAX_SET_BITS, type NumberSet } from '../wire/number-set.ts';
import { type EntityId, type Guid, VENDOR } from '../wire/protocol.ts';
import { PollQueue } from './poll-queue.ts';
import { isTooLarge } from './reassembly.ts';
import { Contest, FIRST_REQUEST_SECONDS, type MatchedWriter, newProxy, SETTLING_SECONDS, type WriterProxy } from './writer-proxy.ts';

export type { MatchedWriter } from './writer-proxy.ts';

/** A delivered sample. */
export interface Received {
  readonly data: DataSubmessage;
  readonly writer: MatchedWriter;
  /** Source of the datagram that completed the sample. */
  readonly source: Source;
}

/** A submessage to send to one writer. */
export type ReaderAction =
  | { readonly kind: 'ackNack'; readonly set: NumberSet; readonly isFinal: boolean }
  | { readonly kind: 'nackFrag'; readonly sequenceNumber: number; readonly set: NumberSet };

export type SendToWriter = (writer: MatchedWriter, actions: readonly ReaderAction[], reader: EntityId, nowSeconds: number) => void;

export interface ReaderOptions {
  readonly entity: EntityId;
  readonly reliable: boolean;
  /** How far ahead of the last delivered number a plausible one is; LIMITS.numbersAhead by default. */
  readonly numbersAhead?: number;
  readonly budget: OctetBudget;
  readonly deliver: (received: Received) => void;
  /** A writer has used a sequence number that cannot be trusted; `message`: what was done. */
  readonly onImplausible?: (message: string, writer: Guid, number: number) => void;
  /**
   * Delivers every sample on arrival, duplicates included, so that a forged sequence number in a sample, a heartbeat or a gap cannot
   * suppress samples of the writer.
   */
  readonly isUnordered?: boolean;
  /** The reader has left the idle state and must be polled. */
  readonly onBusy?: (reader: StatefulReader) => void;
}

const MAX_REQUEST_PERIOD_SECONDS = 3;
/**
 * 8.4.10.1, heartbeatSuppressionDuration: minimum time between equal requests, however many heartbeats arrive, so that a response
 * can arrive first. It doubles with each request without a response.
 */
const FIRST_PAUSE_SECONDS = 0.01;
const MAX_PAUSE_SECONDS = 0.5;
/**
 * A request may be lost and the writer's next heartbeat seconds away, so a request is repeated without a heartbeat, after a time that
 * doubles. 8.4.2.3.4 requires a heartbeat; Cyclone DDS repeats requests, too (AutoReschedNackDelay).
 */
const FIRST_RETRY_SECONDS = 0.1;
const LAST_RETRY_SECONDS = 3;
/** A number far ahead is believed when the writer has sent no plausible one for this long, although it was asked. */
const SILENCE_SECONDS = 3;
const FAR_AHEAD = 'sequence number far ahead ignored while lower ones arrive';
/** Repetitions; afterwards only another heartbeat triggers a request. */
const MAX_RETRIES = 8;

/**
 * A stateful reader (8.4.12): delivers the samples of every matched writer, in order or on arrival, and requests missing ones of reliable
 * writers. It has no clock and no I/O: time and the function that sends are parameters. Times are monotonic seconds.
 */
export class StatefulReader {
  readonly entity: EntityId;
  readonly #options: ReaderOptions;
  readonly #proxies = new Map<Guid, WriterProxy>();
  readonly #busy: PollQueue<WriterProxy>;

  constructor(options: ReaderOptions) {
    this.entity = options.entity;
    this.#options = options;
    this.#busy = new PollQueue(() => options.onBusy?.(this));
  }

  get writerCount(): number {
    return this.#proxies.size;
  }

  /** The number of a writer below which everything was received or skipped; undefined: it is not matched. */
  nextOf(writer: Guid): number | undefined {
    const proxy = this.#proxies.get(writer);
    return proxy && acknowledged(proxy);
  }

  get writers(): MatchedWriter[] {
    return [...this.#proxies.values()].map(({ writer }) => writer);
  }

  /** True: nothing is due, so `poll` need not be called. */
  get isIdle(): boolean {
    return this.#busy.isIdle;
  }

  isMatched(guid: Guid): boolean {
    return this.#proxies.has(guid);
  }

  /** Adds a writer. A heartbeat is requested at once from a reliable one, whose own next heartbeat may be seconds away. */
  match(writer: MatchedWriter, nowSeconds: number): void {
    if (this.#proxies.has(writer.guid)) return;
    const proxy = newProxy(writer, this.#options, nowSeconds);
    this.#proxies.set(writer.guid, proxy);
    if (proxy.isReliable) this.#busy.wake(proxy);
  }

  /** Requests a heartbeat of a writer, again until one arrives. False: the writer sends none. */
  challenge(guid: Guid, nowSeconds: number): boolean {
    const proxy = this.#proxies.get(guid);
    if (!proxy?.isReliable) return false;
    proxy.hasHeartbeat = false;
    proxy.requestAt = nowSeconds;
    proxy.requestPeriodSeconds = FIRST_REQUEST_SECONDS;
    this.#busy.wake(proxy);
    return true;
  }

  /** Matches a writer again from the beginning: what it still has is delivered once more. */
  restart(guid: Guid, nowSeconds: number): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.unmatch(guid);
    this.match(proxy.writer, nowSeconds);
  }

  unmatch(guid: Guid): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.#proxies.delete(guid);
    this.#busy.rest(proxy);
    // `deliver` may have called this: no buffered sample must follow.
    proxy.buffer.clear();
  }

  onData(data: DataSubmessage, source: Source, nowSeconds: number): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy) return;
    this.#accept(proxy, data, source, nowSeconds);
    this.#wakeIfAckDue(proxy);
  }

  onDataFrag(data: DataFragSubmessage, source: Source, nowSeconds: number): void {
    const proxy = this.#proxies.get(data.sender);
    const { sequenceNumber } = data;
    if (!proxy || (sequenceNumber <= proxy.delivered && !proxy.contest)) return;
    if (isTooLarge(data)) {
      if (proxy.isReliable) this.#skip(proxy, sequenceNumber, nowSeconds);
      return;
    }
    if (!proxy.isReliable || proxy.contest) proxy.buffer.parts.dropBelow(sequenceNumber - LIMITS.partialSamples + 1);
    const whole = proxy.buffer.parts.add(data);
    if (whole) this.#accept(proxy, whole, source, nowSeconds);
    this.#wakeIfAckDue(proxy);
  }

  onHeartbeat({ sender, first, last, isFinal }: HeartbeatSubmessage, nowSeconds: number): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    if (this.#isFarAhead(proxy, first - 1, nowSeconds)) {
      this.#requestProof(proxy);
      return;
    }
    proxy.isInDoubt = false;
    if (this.#isBehind(proxy, last, nowSeconds)) this.#requestProof(proxy);
    proxy.hasHeartbeat = true;
    proxy.last = last;
    if (proxy.contest) this.#announce(proxy, proxy.contest, first, last, nowSeconds);
    else if (last < proxy.next - 1) {
      // The writer has not sent what was skipped, so that was skipped by mistake.
      proxy.next = Math.max(proxy.delivered + 1, first);
      this.#deliverInOrder(proxy, nowSeconds);
    }
    // Numbers below the first are no longer available: the samples that were waiting for them are delivered, as are those that arrived
    // although they had been skipped.
    else if (first > proxy.next || proxy.delivered < proxy.next - 1) this.#advance(proxy, Math.max(first, proxy.next), nowSeconds);
    if (!isFinal || proxy.next <= last) proxy.ackNackDue = true;
    if (proxy.ackNackDue) this.#busy.wake(proxy);
  }

  onHeartbeatFrag(sender: Guid, sequenceNumber: number): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable || proxy.contest || sequenceNumber < proxy.next || sequenceNumber > this.#farthest(proxy)) return;
    proxy.last = Math.max(proxy.last, sequenceNumber);
    proxy.ackNackDue = true;
    this.#busy.wake(proxy);
  }

  onGap({ sender, start, set }: GapSubmessage, nowSeconds: number): void {
    const proxy = this.#proxies.get(sender);
    // Of a contested writer a gap may be forged: what it names is requested until it is no longer available, and delays nothing.
    if (!proxy?.isReliable || proxy.contest) return;
    if (set.base - 1 > this.#farthest(proxy)) {
      this.#options.onImplausible?.(FAR_AHEAD, sender, set.base);
      return;
    }
    if (start <= proxy.next) {
      if (set.base > proxy.next) this.#advance(proxy, set.base, nowSeconds);
    } else {
      for (let number = start; number < set.base && proxy.buffer.put(number, null, proxy.next); number += 1);
    }
    for (const number of set.numbers) if (number >= proxy.next) proxy.buffer.put(number, null, proxy.next);
    this.#deliverInOrder(proxy, nowSeconds);
    this.#wakeIfAckDue(proxy);
  }

  /**
   * Whether a number is so far ahead that to believe it would skip many samples. It is believed when no plausible number arrives for
   * several seconds, although the writer is asked to resend its last sample.
   */
  #isFarAhead(proxy: WriterProxy, number: number, nowSeconds: number): boolean {
    if (proxy.contest || number <= this.#farthest(proxy) || nowSeconds - proxy.farAheadSince >= SILENCE_SECONDS) {
      proxy.farAheadSince = Number.POSITIVE_INFINITY;
      return false;
    }
    proxy.farAheadSince = Math.min(proxy.farAheadSince, nowSeconds);
    this.#options.onImplausible?.(FAR_AHEAD, proxy.writer.guid, number);
    return true;
  }

  /** Whether a number contradicts what was delivered. When that repeats, the writer is contested. */
  #isBehind(proxy: WriterProxy, number: number, nowSeconds: number): boolean {
    if (proxy.contest || number >= proxy.settled.at(proxy.delivered, nowSeconds)) return false;
    proxy.behindSince = Math.min(proxy.behindSince, nowSeconds);
    if (nowSeconds - proxy.behindSince < SETTLING_SECONDS) return true;
    this.#contest(proxy, number, nowSeconds);
    return false;
  }

  #contest(proxy: WriterProxy, number: number, nowSeconds: number): void {
    proxy.contest = new Contest(proxy, nowSeconds);
    proxy.buffer.clear();
    proxy.unansweredFrom = 0;
    this.#options.onImplausible?.('several senders use the GUID of a writer, samples of all delivered', proxy.writer.guid, number);
  }

  /** The highest number that is plausible: before the first sample any, since a writer may have sent any number of samples before. */
  #farthest({ delivered }: WriterProxy): number {
    return delivered === 0 ? Number.POSITIVE_INFINITY : delivered + (this.#options.numbersAhead ?? LIMITS.numbersAhead);
  }

  #requestProof(proxy: WriterProxy): void {
    proxy.isInDoubt = true;
    proxy.ackNackDue = true;
    this.#busy.wake(proxy);
  }

  /** Handles the numbers that a contested writer has according to its last message. */
  #announce(proxy: WriterProxy, contest: Contest, first: number, last: number, nowSeconds: number): void {
    proxy.last = last;
    const hasEnded = contest.announce(first, last, nowSeconds);
    this.#settle(proxy, contest);
    if (!hasEnded || proxy.next <= last) return;
    proxy.contest = null;
    proxy.behindSince = Number.POSITIVE_INFINITY;
    proxy.delivered = last;
    proxy.settled.replace(last, nowSeconds);
  }

  #settle(proxy: WriterProxy, contest: Contest): void {
    proxy.next = contest.missing()[0] ?? proxy.last + 1;
  }

  /** A sample may have ended the pause for which a due acknowledgement is waiting. */
  #wakeIfAckDue(proxy: WriterProxy): void {
    if (proxy.ackNackDue && this.#proxies.has(proxy.writer.guid)) this.#busy.wake(proxy);
  }

  /** Sends everything that is due. Returns when to poll again: monotonic seconds, Infinity when nothing is pending. */
  poll(nowSeconds: number, send: SendToWriter): number {
    return this.#busy.poll(nowSeconds, (proxy) => this.#sendDue(proxy, nowSeconds, send));
  }

  /** Returns when to call it again for this writer; null: when a submessage of the writer arrives. */
  #sendDue(proxy: WriterProxy, nowSeconds: number, send: SendToWriter): number | null {
    const isRequestDue = !proxy.hasHeartbeat && nowSeconds >= proxy.requestAt;
    if (isRequestDue) {
      proxy.requestAt = nowSeconds + proxy.requestPeriodSeconds;
      proxy.requestPeriodSeconds = Math.min(2 * proxy.requestPeriodSeconds, MAX_REQUEST_PERIOD_SECONDS);
    }
    const isComplete = proxy.next > proxy.last && !proxy.isInDoubt;
    if (isComplete) proxy.requestAgainAt = Number.POSITIVE_INFINITY;
    else if (nowSeconds >= proxy.requestAgainAt) proxy.ackNackDue = true;
    const pauseEnd = this.#pauseEnd(proxy);
    if (proxy.ackNackDue && nowSeconds >= pauseEnd) {
      proxy.ackNackDue = false;
      send(proxy.writer, this.#acknowledgement(proxy, nowSeconds), this.entity, nowSeconds);
    } else if (isRequestDue) {
      send(proxy.writer, [{ kind: 'ackNack', set: firstAckNack(proxy.writer), isFinal: false }], this.entity, nowSeconds);
    }
    if (proxy.ackNackDue) return pauseEnd;
    if (!proxy.hasHeartbeat) return proxy.requestAt;
    return proxy.requestAgainAt === Number.POSITIVE_INFINITY ? null : proxy.requestAgainAt;
  }

  #accept(proxy: WriterProxy, data: DataSubmessage, source: Source, nowSeconds: number): void {
    const { sequenceNumber } = data;
    const { deliver, isUnordered } = this.#options;
    if (isUnordered) deliver({ data, source, writer: proxy.writer });
    if (!proxy.isReliable && (this.#isBehind(proxy, sequenceNumber, nowSeconds) || this.#isFarAhead(proxy, sequenceNumber, nowSeconds)))
      return;
    // A writer sends a number only once, so one of two samples with the last number is forged.
    if (sequenceNumber === proxy.delivered && data.sourceTimestampMs !== proxy.deliveredTimestampMs && !proxy.contest)
      this.#contest(proxy, sequenceNumber, nowSeconds);
    const { contest } = proxy;
    if (contest) {
      const isNew = contest.add(sequenceNumber, data.payload);
      if (proxy.isReliable) this.#settle(proxy, contest);
      else this.#announce(proxy, contest, sequenceNumber, sequenceNumber, nowSeconds);
      if (isNew && !isUnordered) deliver({ data, source, writer: proxy.writer });
      return;
    }
    if (sequenceNumber <= proxy.delivered) return;
    if (proxy.isReliable && sequenceNumber !== proxy.next) {
      // A sample that is not buffered because of the limits is requested again.
      proxy.buffer.put(sequenceNumber, { data: isUnordered ? { ...data, payload: null } : data, source }, proxy.next);
      return;
    }
    // Samples that arrived although they had been skipped go first.
    if (proxy.delivered < proxy.next - 1) this.#advance(proxy, proxy.next, nowSeconds);
    this.#countDelivery(proxy, data, nowSeconds);
    proxy.buffer.parts.dropBelow(proxy.next);
    if (!isUnordered) deliver({ data, source, writer: proxy.writer });
    this.#deliverInOrder(proxy, nowSeconds);
  }

  #countDelivery(proxy: WriterProxy, { sequenceNumber, sourceTimestampMs }: DataSubmessage, nowSeconds: number): void {
    proxy.settled.replace(proxy.delivered, nowSeconds);
    if (sequenceNumber > proxy.delivered + 1) proxy.jump = { from: proxy.delivered, to: sequenceNumber };
    proxy.delivered = sequenceNumber;
    proxy.deliveredTimestampMs = sourceTimestampMs;
    proxy.next = Math.max(proxy.next, sequenceNumber + 1);
  }

  #deliverInOrder(proxy: WriterProxy, nowSeconds: number): void {
    while (proxy.buffer.has(proxy.next)) this.#deliverBuffered(proxy, proxy.next, nowSeconds);
  }

  #deliverBuffered(proxy: WriterProxy, number: number, nowSeconds: number): void {
    const received = proxy.buffer.remove(number);
    proxy.next = Math.max(proxy.next, number + 1);
    if (!received) return;
    this.#countDelivery(proxy, received.data, nowSeconds);
    if (!this.#options.isUnordered) this.#options.deliver({ ...received, writer: proxy.writer });
  }

  /** Delivers the buffered samples below `to` and waits for no other ones below it. */
  #advance(proxy: WriterProxy, to: number, nowSeconds: number): void {
    for (const number of proxy.buffer.below(to)) this.#deliverBuffered(proxy, number, nowSeconds);
    proxy.next = Math.max(proxy.next, to);
    proxy.buffer.parts.dropBelow(proxy.next);
    this.#deliverInOrder(proxy, nowSeconds);
  }

  /** Skips a sample that will not be received, like one in a GAP. */
  #skip(proxy: WriterProxy, number: number, nowSeconds: number): void {
    if (proxy.contest) {
      proxy.contest.add(number, null);
      this.#settle(proxy, proxy.contest);
    } else if (number === proxy.next) this.#advance(proxy, number + 1, nowSeconds);
    else proxy.buffer.put(number, null, proxy.next);
  }

  /** Acknowledges received samples and requests missing ones (8.4.12.3), by fragment where some fragments are present. */
  #acknowledgement(proxy: WriterProxy, nowSeconds: number): ReaderAction[] {
    let missing = this.#missing(proxy);
    if (missing[0] !== undefined && this.#isBeyondRetries(proxy, missing[0], nowSeconds) && !proxy.isInDoubt) {
      this.#skip(proxy, missing[0], nowSeconds);
      missing = this.#missing(proxy);
    }
    const again = Math.min(FIRST_RETRY_SECONDS * 2 ** (proxy.unanswered - 1), LAST_RETRY_SECONDS);
    const mayRequest = missing.length > 0 && proxy.unanswered <= MAX_RETRIES;
    proxy.requestAgainAt = mayRequest ? nowSeconds + again : Number.POSITIVE_INFINITY;
    const whole = missing.filter((number) => !proxy.buffer.parts.has(number));
    const base = missing[0] ?? acknowledged(proxy);
    const isFinal = missing.length === 0 && !proxy.isInDoubt;
    const actions: ReaderAction[] = [{ kind: 'ackNack', set: { base, numbers: whole }, isFinal }];
    for (const sequenceNumber of missing) {
      const [base, ...others] = proxy.buffer.parts.missing(sequenceNumber);
      if (base !== undefined) actions.push({ kind: 'nackFrag', sequenceNumber, set: { base, numbers: [base, ...others] } });
    }
    return actions;
  }

  /** Counts a request. True: the writer has not sent the sample after many requests, which must not block the following samples. */
  #isBeyondRetries(proxy: WriterProxy, from: number, nowSeconds: number): boolean {
    if (from !== proxy.unansweredFrom) {
      proxy.unansweredFrom = from;
      proxy.unanswered = 0;
      proxy.unansweredSince = nowSeconds;
    }
    proxy.unanswered += 1;
    proxy.requestedAt = nowSeconds;
    return proxy.unanswered > LIMITS.unansweredRequests && nowSeconds - proxy.unansweredSince > LIMITS.unansweredSeconds;
  }

  /** The end of the pause after an equal request. */
  #pauseEnd(proxy: WriterProxy): number {
    if (firstMissing(proxy) !== proxy.unansweredFrom) return Number.NEGATIVE_INFINITY;
    return proxy.requestedAt + Math.min(FIRST_PAUSE_SECONDS * 2 ** (proxy.unanswered - 1), MAX_PAUSE_SECONDS);
  }

  #missing(proxy: WriterProxy): number[] {
    if (proxy.contest) return proxy.contest.missing();
    const missing: number[] = [];
    const end = Math.min(proxy.last, proxy.next + MAX_SET_BITS - 1);
    for (let number = proxy.next; number <= end; number += 1) if (!proxy.buffer.has(number)) missing.push(number);
    const first = firstMissing(proxy);
    if (missing.length === 0 && first > 0) missing.push(first);
    return missing;
  }
}

/** The first number to request: a missing one, or in doubt the last known one once more; 0: none. */
function firstMissing({ delivered, isInDoubt, last, next }: WriterProxy): number {
  if (next <= last) return next;
  return isInDoubt ? Math.min(delivered, last) : 0;
}

/** The number below which all is acknowledged: not more than the writer has sent, since a forged one may stop Fast DDS from sending. */
function acknowledged({ last, next }: WriterProxy): number {
  return Math.min(next, last + 1);
}

/** The ACKNACK that requests the first heartbeat. Fast DDS responds only to base 0, which other implementations do not support. */
function firstAckNack({ vendor }: MatchedWriter): NumberSet {
  return { base: vendor === VENDOR.FAST_DDS ? 0 : 1, numbers: [] };
}
