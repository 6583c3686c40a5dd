import { LIMITS, type OctetBudget } from '../limits.ts';
import type { Source } from '../net/network.ts';
import type { DataFragSubmessage, DataSubmessage, GapSubmessage, HeartbeatSubmessage } from '../wire/message-reader.ts';
import { MAX_SET_BITS, type NumberSet } from '../wire/number-set.ts';
import { type EntityId, type Guid, VENDOR } from '../wire/protocol.ts';
import { PollQueue } from './poll-queue.ts';
import { isTooLarge } from './reassembly.ts';
import { type MatchedWriter, newProxy, type WriterProxy } from './writer-proxy.ts';

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
  readonly budget: OctetBudget;
  readonly deliver: (received: Received) => void;
  /** A writer has used a sequence number that is implausibly far ahead. */
  readonly onFarAhead?: (writer: Guid, number: number) => void;
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
    return this.#proxies.get(writer)?.next;
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

  unmatch(guid: Guid): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.#proxies.delete(guid);
    this.#busy.rest(proxy);
    // `deliver` may have called this: no buffered sample must follow.
    proxy.buffer.clear();
  }

  onData(data: DataSubmessage, source: Source): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy) return;
    this.#accept(proxy, data, source);
    this.#wakeIfAckDue(proxy);
  }

  onDataFrag(data: DataFragSubmessage, source: Source): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy || data.sequenceNumber < proxy.next || proxy.buffer.has(data.sequenceNumber)) return;
    if (isTooLarge(data)) {
      this.#skip(proxy, data.sequenceNumber);
      return;
    }
    if (!proxy.isReliable) proxy.buffer.parts.dropBelow(data.sequenceNumber - LIMITS.partialSamples + 1);
    const whole = proxy.buffer.parts.add(data);
    if (whole) this.#accept(proxy, whole, source);
    this.#wakeIfAckDue(proxy);
  }

  onHeartbeat({ sender, first, last, count, isFinal }: HeartbeatSubmessage): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    if (!this.#isConfirmed(proxy, Math.max(first - 1, last), count)) {
      // The acknowledgement requests another heartbeat, which may confirm the number.
      proxy.ackNackDue = true;
      this.#busy.wake(proxy);
      return;
    }
    proxy.hasHeartbeat = true;
    proxy.last = Math.max(proxy.last, last);
    // Numbers below the first are no longer available: the samples that were waiting for them are delivered.
    if (first > proxy.next) this.#advance(proxy, first);
    if (!isFinal || proxy.next <= last) proxy.ackNackDue = true;
    if (proxy.ackNackDue) this.#busy.wake(proxy);
  }

  onHeartbeatFrag(sender: Guid, sequenceNumber: number): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable || sequenceNumber < proxy.next || this.#isFarAhead(proxy, sequenceNumber)) return;
    proxy.last = Math.max(proxy.last, sequenceNumber);
    proxy.ackNackDue = true;
    this.#busy.wake(proxy);
  }

  onGap({ sender, start, set }: GapSubmessage): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    if (this.#isFarAhead(proxy, set.base - 1)) {
      this.#options.onFarAhead?.(sender, set.base);
      return;
    }
    if (start <= proxy.next) {
      if (set.base > proxy.next) this.#advance(proxy, set.base);
    } else {
      for (let number = start; number < set.base && proxy.buffer.put(number, null, proxy.next); number += 1);
    }
    for (const number of set.numbers) if (number >= proxy.next) proxy.buffer.put(number, null, proxy.next);
    this.#deliverInOrder(proxy);
    this.#wakeIfAckDue(proxy);
  }

  /** Whether a sequence number is implausible for the writer. Of a new writer any number is accepted. */
  #isFarAhead(proxy: WriterProxy, number: number): boolean {
    const isKnown = proxy.next > 1 || (proxy.isReliable && proxy.hasHeartbeat);
    return isKnown && number - Math.max(proxy.next - 1, proxy.last) > LIMITS.numbersAhead;
  }

  /** A number far ahead would make this reader skip all following samples, so it is accepted only when a second message confirms it. */
  #isConfirmed(proxy: WriterProxy, number: number, count: number): boolean {
    const { farAhead } = proxy;
    const isFar = this.#isFarAhead(proxy, number);
    const isRepeated = farAhead !== null && count > farAhead.count && Math.abs(number - farAhead.number) <= LIMITS.numbersAhead;
    proxy.farAhead = isFar && !isRepeated ? { number, count } : null;
    if (proxy.farAhead) this.#options.onFarAhead?.(proxy.writer.guid, number);
    return proxy.farAhead === null;
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
    const isComplete = proxy.next > proxy.last;
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

  #accept(proxy: WriterProxy, data: DataSubmessage, source: Source): void {
    const { sequenceNumber } = data;
    const { deliver, isUnordered } = this.#options;
    if (isUnordered) deliver({ data, source, writer: proxy.writer });
    if (sequenceNumber < proxy.next) return;
    if (proxy.isReliable && sequenceNumber > proxy.next) {
      // A sample that is not buffered because of the limits is requested again.
      proxy.buffer.put(sequenceNumber, isUnordered ? null : { data, source }, proxy.next);
      return;
    }
    // A best-effort writer sends no heartbeats, so the next sample confirms the number.
    if (!proxy.isReliable && !this.#isConfirmed(proxy, sequenceNumber, sequenceNumber)) return;
    proxy.next = sequenceNumber + 1;
    proxy.buffer.parts.dropBelow(proxy.next);
    if (!isUnordered) deliver({ data, source, writer: proxy.writer });
    this.#deliverInOrder(proxy);
  }

  #deliverInOrder(proxy: WriterProxy): void {
    while (proxy.buffer.has(proxy.next)) this.#deliverBuffered(proxy, proxy.next);
  }

  #deliverBuffered(proxy: WriterProxy, number: number): void {
    const received = proxy.buffer.remove(number);
    proxy.next = Math.max(proxy.next, number + 1);
    if (received) this.#options.deliver({ ...received, writer: proxy.writer });
  }

  /** Delivers the buffered samples below `to` and waits for no other ones below it. */
  #advance(proxy: WriterProxy, to: number): void {
    for (const number of proxy.buffer.below(to)) this.#deliverBuffered(proxy, number);
    proxy.next = Math.max(proxy.next, to);
    proxy.buffer.parts.dropBelow(proxy.next);
    this.#deliverInOrder(proxy);
  }

  /** Skips a sample that will not be received, like one in a GAP. */
  #skip(proxy: WriterProxy, number: number): void {
    if (!proxy.isReliable) return;
    if (number === proxy.next) this.#advance(proxy, number + 1);
    else proxy.buffer.put(number, null, proxy.next);
  }

  /** Acknowledges received samples and requests missing ones (8.4.12.3), by fragment where some fragments are present. */
  #acknowledgement(proxy: WriterProxy, nowSeconds: number): ReaderAction[] {
    let missing = this.#missing(proxy);
    if (missing[0] !== undefined && this.#isBeyondRetries(proxy, missing[0], nowSeconds)) {
      this.#skip(proxy, missing[0]);
      missing = this.#missing(proxy);
    }
    const again = Math.min(FIRST_RETRY_SECONDS * 2 ** (proxy.unanswered - 1), LAST_RETRY_SECONDS);
    const mayRequest = missing.length > 0 && proxy.unanswered <= MAX_RETRIES;
    proxy.requestAgainAt = mayRequest ? nowSeconds + again : Number.POSITIVE_INFINITY;
    const whole = missing.filter((number) => !proxy.buffer.parts.has(number));
    // An unconfirmed heartbeat needs another one.
    const isFinal = missing.length === 0 && proxy.farAhead === null;
    const actions: ReaderAction[] = [{ kind: 'ackNack', set: { base: proxy.next, numbers: whole }, isFinal }];
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
    if (proxy.next !== proxy.unansweredFrom || proxy.next > proxy.last) return Number.NEGATIVE_INFINITY;
    return proxy.requestedAt + Math.min(FIRST_PAUSE_SECONDS * 2 ** (proxy.unanswered - 1), MAX_PAUSE_SECONDS);
  }

  #missing(proxy: WriterProxy): number[] {
    const missing: number[] = [];
    const end = Math.min(proxy.last, proxy.next + MAX_SET_BITS - 1);
    for (let number = proxy.next; number <= end; number += 1) if (!proxy.buffer.has(number)) missing.push(number);
    return missing;
  }
}

/** The ACKNACK that requests the first heartbeat. Fast DDS responds only to base 0, which other implementations do not support. */
function firstAckNack({ vendor }: MatchedWriter): NumberSet {
  return { base: vendor === VENDOR.FAST_DDS ? 0 : 1, numbers: [] };
}
