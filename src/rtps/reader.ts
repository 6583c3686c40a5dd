import { Attention } from './attention.ts';
import { LIMITS, type OctetBudget } from './limits.ts';
import type { DataFragSubmessage, DataSubmessage, GapSubmessage, HeartbeatSubmessage } from './message-reader.ts';
import type { Source } from './network.ts';
import { MAX_SET_BITS, type NumberSet } from './number-set.ts';
import { type EntityId, type Guid, VENDOR } from './protocol.ts';
import { isTooLarge } from './reassembly.ts';
import { type MatchedWriter, newProxy, type WriterProxy } from './writer-proxy.ts';

export type { MatchedWriter } from './writer-proxy.ts';

/** A sample as it is delivered: once, and in the writer's order. */
export interface Received {
  readonly data: DataSubmessage;
  readonly writer: MatchedWriter;
  /** Of the datagram that completed it. */
  readonly source: Source;
}

/** What is to be sent to one writer. */
export type ReaderAction =
  | { readonly kind: 'ackNack'; readonly set: NumberSet; readonly isFinal: boolean }
  | { readonly kind: 'nackFrag'; readonly sequenceNumber: number; readonly set: NumberSet };

export type SendToWriter = (writer: MatchedWriter, actions: readonly ReaderAction[]) => void;

export interface ReaderOptions {
  readonly entity: EntityId;
  readonly reliable: boolean;
  readonly budget: OctetBudget;
  readonly deliver: (received: Received) => void;
  /** A number is too far ahead to be believed. */
  readonly onFarAhead?: (writer: Guid, number: number) => void;
  /**
   * Delivers whatever comes at once, and again when it comes again: a number that was forged, in a sample, a heartbeat or a gap, keeps nothing
   * that the writer sends from being delivered.
   */
  readonly isUnordered?: boolean;
  /** There is something to be polled for, after there was nothing. */
  readonly onBusy?: (reader: StatefulReader) => void;
}

const LAST_ASK_SECONDS = 3;
/**
 * 8.4.10.1, heartbeatSuppressionDuration: however many heartbeats come, the same is not asked for again before an answer can have come;
 * the longer there is none, the longer.
 */
const FIRST_PAUSE_SECONDS = 0.01;
const LAST_PAUSE_SECONDS = 0.5;
/**
 * A request may be lost, and the writer's next heartbeat be seconds away: it is made again after this, and twice that, and so on, without
 * waiting for one (8.4.2.3.4 asks for one, Cyclone DDS AutoReschedNackDelay, does the same).
 */
const FIRST_AGAIN_SECONDS = 0.1;
const LAST_AGAIN_SECONDS = 3;
/** So often; from then on only when the writer says once more that it has it. */
const MOST_AGAIN = 8;

/**
 * A stateful reader (8.4.12): takes samples of every matched writer, delivers them in order (or at once), and asks the reliable ones for what is
 * missing. Pure: time comes in, what to send goes out. Times are monotonic seconds.
 */
export class StatefulReader {
  readonly entity: EntityId;
  readonly #options: ReaderOptions;
  readonly #proxies = new Map<Guid, WriterProxy>();
  readonly #busy: Attention<WriterProxy>;
  #skipped = 0;

  constructor(options: ReaderOptions) {
    this.entity = options.entity;
    this.#options = options;
    this.#busy = new Attention(() => options.onBusy?.(this));
  }

  get writerCount(): number {
    return this.#proxies.size;
  }

  get writers(): MatchedWriter[] {
    return [...this.#proxies.values()].map(({ writer }) => writer);
  }

  /** Samples that were given up because their writer never sent them. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Nothing is to be polled for. */
  get isIdle(): boolean {
    return this.#busy.isIdle;
  }

  isMatched(guid: Guid): boolean {
    return this.#proxies.has(guid);
  }

  /** Adds a writer. A reliable one is asked at once for a heartbeat: its own next one may be seconds away. */
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
    // It may be unmatched while it delivers: nothing is left to be delivered.
    proxy.waiting.clear();
  }

  onData(data: DataSubmessage, source: Source): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy) return;
    this.#take(proxy, data, source);
    this.#look(proxy);
  }

  onDataFrag(data: DataFragSubmessage, source: Source): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy || data.sequenceNumber < proxy.next || proxy.waiting.has(data.sequenceNumber)) return;
    if (isTooLarge(data)) {
      this.#passOver(proxy, data.sequenceNumber);
      return;
    }
    if (!proxy.isReliable) proxy.waiting.dropPartsBelow(data.sequenceNumber - LIMITS.partialSamples + 1);
    const whole = proxy.waiting.addPart(data);
    if (whole) this.#take(proxy, whole, source);
    this.#look(proxy);
  }

  onHeartbeat({ sender, first, last, count, isFinal }: HeartbeatSubmessage): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    if (!this.#isBelieved(proxy, Math.max(first - 1, last), count)) {
      // What it says next shows whether that was true.
      proxy.ackNackDue = true;
      this.#busy.wake(proxy);
      return;
    }
    proxy.heard = true;
    proxy.last = Math.max(proxy.last, last);
    // What is below its first will not come any more: what waits for that goes out.
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
      for (let number = start; number < set.base && proxy.waiting.put(number, null, proxy.next); number += 1);
    }
    for (const number of set.numbers) if (number >= proxy.next) proxy.waiting.put(number, null, proxy.next);
    this.#deliverInOrder(proxy);
    this.#look(proxy);
  }

  /** Whether a number is out of all proportion to what is known of a writer; of one that was just found nothing is. */
  #isFarAhead(proxy: WriterProxy, number: number): boolean {
    const isKnown = proxy.next > 1 || (proxy.isReliable && proxy.heard);
    return isKnown && number - Math.max(proxy.next - 1, proxy.last) > LIMITS.numbersAhead;
  }

  /** A number far ahead, which would make this reader pass over all that is to come, is believed when it is confirmed by another message. */
  #isBelieved(proxy: WriterProxy, number: number, count: number): boolean {
    const { farAhead } = proxy;
    const isFar = this.#isFarAhead(proxy, number);
    const isConfirmed = farAhead !== null && count > farAhead.count && Math.abs(number - farAhead.number) <= LIMITS.numbersAhead;
    proxy.farAhead = isFar && !isConfirmed ? { number, count } : null;
    if (proxy.farAhead) this.#options.onFarAhead?.(proxy.writer.guid, number);
    return proxy.farAhead === null;
  }

  /** What came may be what an acknowledgement waits for. */
  #look(proxy: WriterProxy): void {
    if (proxy.ackNackDue && this.#proxies.has(proxy.writer.guid)) this.#busy.wake(proxy);
  }

  /** Sends what is due now. Returns when to be called again: monotonic seconds, Infinity when nothing is waiting. */
  poll(nowSeconds: number, send: SendToWriter): number {
    return this.#busy.poll(nowSeconds, (proxy) => this.#say(proxy, nowSeconds, send));
  }

  /** When it has to say something again; null: not until something comes. */
  #say(proxy: WriterProxy, nowSeconds: number, send: SendToWriter): number | null {
    const asks = !proxy.heard && nowSeconds >= proxy.askAt;
    if (asks) {
      proxy.askAt = nowSeconds + proxy.askPeriodSeconds;
      proxy.askPeriodSeconds = Math.min(2 * proxy.askPeriodSeconds, LAST_ASK_SECONDS);
    }
    const isComplete = proxy.next > proxy.last;
    if (isComplete) proxy.askAgainAt = Number.POSITIVE_INFINITY;
    else if (nowSeconds >= proxy.askAgainAt) proxy.ackNackDue = true;
    const pauseEnd = this.#pauseEnd(proxy);
    if (proxy.ackNackDue && nowSeconds >= pauseEnd) {
      proxy.ackNackDue = false;
      send(proxy.writer, this.#acknowledgement(proxy, nowSeconds));
    } else if (asks) send(proxy.writer, [{ kind: 'ackNack', set: firstQuestion(proxy.writer), isFinal: false }]);
    if (proxy.ackNackDue) return pauseEnd;
    if (!proxy.heard) return proxy.askAt;
    return proxy.askAgainAt === Number.POSITIVE_INFINITY ? null : proxy.askAgainAt;
  }

  #take(proxy: WriterProxy, data: DataSubmessage, source: Source): void {
    const { sequenceNumber } = data;
    const { deliver, isUnordered } = this.#options;
    if (isUnordered) deliver({ data, source, writer: proxy.writer });
    if (sequenceNumber < proxy.next) return;
    if (proxy.isReliable && sequenceNumber > proxy.next) {
      // When there is no room it will be asked for again.
      proxy.waiting.put(sequenceNumber, isUnordered ? null : { data, source }, proxy.next);
      return;
    }
    // Where there are no heartbeats the next sample is what confirms it.
    if (!proxy.isReliable && !this.#isBelieved(proxy, sequenceNumber, sequenceNumber)) return;
    proxy.next = sequenceNumber + 1;
    proxy.waiting.dropPartsBelow(proxy.next);
    if (!isUnordered) deliver({ data, source, writer: proxy.writer });
    this.#deliverInOrder(proxy);
  }

  #deliverInOrder(proxy: WriterProxy): void {
    while (proxy.waiting.has(proxy.next)) this.#deliverWaiting(proxy, proxy.next);
  }

  #deliverWaiting(proxy: WriterProxy, number: number): void {
    const received = proxy.waiting.remove(number);
    proxy.next = Math.max(proxy.next, number + 1);
    if (received) this.#options.deliver({ ...received, writer: proxy.writer });
  }

  /** Nothing below `to` is waited for any more. */
  #advance(proxy: WriterProxy, to: number): void {
    for (const number of proxy.waiting.below(to)) this.#deliverWaiting(proxy, number);
    proxy.next = Math.max(proxy.next, to);
    proxy.waiting.dropPartsBelow(proxy.next);
    this.#deliverInOrder(proxy);
  }

  /** One that will not come: as if the writer had said so. */
  #passOver(proxy: WriterProxy, number: number): void {
    if (!proxy.isReliable) return;
    this.#skipped += 1;
    if (number === proxy.next) this.#advance(proxy, number + 1);
    else proxy.waiting.put(number, null, proxy.next);
  }

  /** Acknowledges what is there and asks for what is not (8.4.12.3); partly arrived samples are asked for by fragment. */
  #acknowledgement(proxy: WriterProxy, nowSeconds: number): ReaderAction[] {
    let missing = this.#missing(proxy);
    if (missing[0] !== undefined && this.#isGivenUp(proxy, missing[0], nowSeconds)) {
      this.#passOver(proxy, missing[0]);
      missing = this.#missing(proxy);
    }
    const again = Math.min(FIRST_AGAIN_SECONDS * 2 ** (proxy.unanswered - 1), LAST_AGAIN_SECONDS);
    const mayAsk = missing.length > 0 && proxy.unanswered <= MOST_AGAIN;
    proxy.askAgainAt = mayAsk ? nowSeconds + again : Number.POSITIVE_INFINITY;
    const whole = missing.filter((number) => !proxy.waiting.hasPart(number));
    // Where a heartbeat is doubted, another one is asked for.
    const isFinal = missing.length === 0 && proxy.farAhead === null;
    const actions: ReaderAction[] = [{ kind: 'ackNack', set: { base: proxy.next, numbers: whole }, isFinal }];
    for (const sequenceNumber of missing) {
      const [base, ...others] = proxy.waiting.missingParts(sequenceNumber);
      if (base !== undefined) actions.push({ kind: 'nackFrag', sequenceNumber, set: { base, numbers: [base, ...others] } });
    }
    return actions;
  }

  /** Counts a request; true: a writer that never sends what it claims to have would hold up all that follows. */
  #isGivenUp(proxy: WriterProxy, from: number, nowSeconds: number): boolean {
    if (from !== proxy.unansweredFrom) {
      proxy.unansweredFrom = from;
      proxy.unanswered = 0;
      proxy.unansweredSince = nowSeconds;
    }
    proxy.unanswered += 1;
    proxy.askedAt = nowSeconds;
    return proxy.unanswered > LIMITS.unansweredRequests && nowSeconds - proxy.unansweredSince > LIMITS.unansweredSeconds;
  }

  /** Until when the request that would be made now is not made, because it was made a moment ago. */
  #pauseEnd(proxy: WriterProxy): number {
    if (proxy.next !== proxy.unansweredFrom || proxy.next > proxy.last) return Number.NEGATIVE_INFINITY;
    return proxy.askedAt + Math.min(FIRST_PAUSE_SECONDS * 2 ** (proxy.unanswered - 1), LAST_PAUSE_SECONDS);
  }

  #missing(proxy: WriterProxy): number[] {
    const missing: number[] = [];
    const end = Math.min(proxy.last, proxy.next + MAX_SET_BITS - 1);
    for (let number = proxy.next; number <= end; number += 1) if (!proxy.waiting.has(number)) missing.push(number);
    return missing;
  }
}

/** What makes a writer send its first heartbeat now. Fast DDS takes only base 0 for that question, which others do not know. */
function firstQuestion({ vendor }: MatchedWriter): NumberSet {
  return { base: vendor === VENDOR.FAST_DDS ? 0 : 1, numbers: [] };
}
