import { LIMITS, type OctetBudget } from './limits.ts';
import type { DataFragSubmessage, DataSubmessage, GapSubmessage, HeartbeatSubmessage } from './message-reader.ts';
import { MAX_SET_BITS, type NumberSet } from './number-set.ts';
import { type EntityId, type Guid, VENDOR } from './protocol.ts';
import { Reassembly } from './reassembly.ts';

/** A remote writer, as matching found it. */
export interface MatchedWriter {
  readonly guid: Guid;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly vendor: number;
  readonly userData: string;
}

/** A sample as it is delivered: once, and in the writer's order. */
export interface Received {
  readonly data: DataSubmessage;
  readonly writer: MatchedWriter;
  /** Where the datagram that completed it came from. */
  readonly address: string;
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
}

/** What waits for an earlier sample; null: told to be irrelevant. */
type Waiting = Received | null;

/** What the reader knows of one matched writer (8.4.10.4, WriterProxy). */
interface WriterProxy {
  readonly writer: MatchedWriter;
  readonly isReliable: boolean;
  readonly reassembly: Reassembly;
  /** All below was delivered, or will never come. */
  next: number;
  /** The highest number the writer is known to have. */
  last: number;
  readonly waiting: Map<number, Waiting>;
  waitingOctets: number;
  heard: boolean;
  ackNackDue: boolean;
  /** While the writer has not said anything: when to ask it again. */
  askAt: number;
  askPeriodSeconds: number;
  /** Requests in a row that began with the same number. */
  unanswered: number;
  unansweredFrom: number;
}

const FIRST_ASK_SECONDS = 0.1;
const LAST_ASK_SECONDS = 3;

/**
 * A stateful reader (8.4.12): takes samples of every matched writer, delivers them in order, and asks the reliable ones for what is
 * missing. Pure: time comes in, what to send goes out. Times are monotonic seconds.
 */
export class StatefulReader {
  readonly entity: EntityId;
  readonly #options: ReaderOptions;
  readonly #proxies = new Map<Guid, WriterProxy>();
  readonly #busy = new Set<WriterProxy>();
  #skipped = 0;

  constructor(options: ReaderOptions) {
    this.entity = options.entity;
    this.#options = options;
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

  isMatched(guid: Guid): boolean {
    return this.#proxies.has(guid);
  }

  /** Adds a writer. A reliable one is asked at once for a heartbeat: its own next one may be seconds away. */
  match(writer: MatchedWriter, nowSeconds: number): void {
    if (this.#proxies.has(writer.guid)) return;
    const isReliable = writer.reliable && this.#options.reliable;
    const proxy: WriterProxy = {
      writer,
      isReliable,
      reassembly: new Reassembly(this.#options.budget),
      next: 1,
      last: 0,
      waiting: new Map(),
      waitingOctets: 0,
      heard: !isReliable,
      ackNackDue: false,
      askAt: nowSeconds,
      askPeriodSeconds: FIRST_ASK_SECONDS,
      unanswered: 0,
      unansweredFrom: 0,
    };
    this.#proxies.set(writer.guid, proxy);
    if (isReliable) this.#busy.add(proxy);
  }

  unmatch(guid: Guid): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.#proxies.delete(guid);
    this.#busy.delete(proxy);
    proxy.reassembly.clear();
    this.#options.budget.giveBack(proxy.waitingOctets);
    // It may be unmatched while it delivers.
    proxy.waiting.clear();
    proxy.waitingOctets = 0;
  }

  onData(data: DataSubmessage, address: string): void {
    const proxy = this.#proxies.get(data.sender);
    if (proxy) this.#take(proxy, data, address);
  }

  onDataFrag(data: DataFragSubmessage, address: string): void {
    const proxy = this.#proxies.get(data.sender);
    if (!proxy || data.sequenceNumber < proxy.next || proxy.waiting.has(data.sequenceNumber)) return;
    if (!proxy.isReliable) proxy.reassembly.dropBelow(data.sequenceNumber - LIMITS.partialSamples + 1);
    const whole = proxy.reassembly.add(data);
    if (whole) this.#take(proxy, whole, address);
  }

  onHeartbeat({ sender, first, last, isFinal }: HeartbeatSubmessage): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    proxy.heard = true;
    proxy.last = Math.max(proxy.last, last);
    // What is below its first will not come any more: what waits for that goes out.
    if (first > proxy.next) this.#advance(proxy, first);
    if (!isFinal || proxy.next <= last) proxy.ackNackDue = true;
    if (proxy.ackNackDue) this.#busy.add(proxy);
  }

  onHeartbeatFrag(sender: Guid, sequenceNumber: number): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable || sequenceNumber < proxy.next) return;
    proxy.last = Math.max(proxy.last, sequenceNumber);
    proxy.ackNackDue = true;
    this.#busy.add(proxy);
  }

  onGap({ sender, start, set }: GapSubmessage): void {
    const proxy = this.#proxies.get(sender);
    if (!proxy?.isReliable) return;
    if (start <= proxy.next) {
      if (set.base > proxy.next) this.#advance(proxy, set.base);
    } else {
      for (let number = start; number < set.base && this.#note(proxy, number, null); number += 1);
    }
    for (const number of set.numbers) this.#note(proxy, number, null);
    this.#deliverInOrder(proxy);
  }

  /** Sends what is due now. Returns when to be called again: monotonic seconds, Infinity when nothing is waiting. */
  poll(nowSeconds: number, send: SendToWriter): number {
    let deadline = Number.POSITIVE_INFINITY;
    for (const proxy of this.#busy) {
      const asks = !proxy.heard && nowSeconds >= proxy.askAt;
      if (asks) {
        proxy.askAt = nowSeconds + proxy.askPeriodSeconds;
        proxy.askPeriodSeconds = Math.min(2 * proxy.askPeriodSeconds, LAST_ASK_SECONDS);
      }
      if (proxy.ackNackDue) send(proxy.writer, this.#acknowledgement(proxy));
      else if (asks) send(proxy.writer, [{ kind: 'ackNack', set: firstQuestion(proxy.writer), isFinal: false }]);
      proxy.ackNackDue = false;
      if (proxy.heard) this.#busy.delete(proxy);
      else deadline = Math.min(deadline, proxy.askAt);
    }
    return deadline;
  }

  #take(proxy: WriterProxy, data: DataSubmessage, address: string): void {
    const { sequenceNumber } = data;
    const received: Received = { data, writer: proxy.writer, address };
    if (!proxy.isReliable) {
      if (sequenceNumber < proxy.next) return;
      proxy.next = sequenceNumber + 1;
      proxy.reassembly.dropBelow(proxy.next);
      this.#options.deliver(received);
      return;
    }
    if (sequenceNumber === proxy.next) {
      proxy.next += 1;
      proxy.reassembly.drop(sequenceNumber);
      this.#options.deliver(received);
      this.#deliverInOrder(proxy);
      return;
    }
    // It waits; the datagram's memory does not.
    const payload = data.payload && Buffer.from(data.payload);
    const inlineQos = data.inlineQos?.detached() ?? null;
    this.#note(proxy, sequenceNumber, { ...received, data: { ...data, payload, inlineQos } });
  }

  /** Keeps what is ahead of its turn; false when there is no room (it will be asked for again). */
  #note(proxy: WriterProxy, number: number, what: Waiting): boolean {
    if (number < proxy.next || proxy.waiting.has(number)) return true;
    if (number - proxy.next > LIMITS.waitingSamples || proxy.waiting.size >= LIMITS.waitingSamples) return false;
    const octets = what?.data.payload?.length ?? 0;
    if (!this.#options.budget.take(octets)) return false;
    proxy.waitingOctets += octets;
    proxy.waiting.set(number, what);
    if (what === null) proxy.reassembly.drop(number);
    return true;
  }

  #deliverInOrder(proxy: WriterProxy): void {
    while (proxy.waiting.has(proxy.next)) this.#deliverWaiting(proxy, proxy.next);
  }

  #deliverWaiting(proxy: WriterProxy, number: number): void {
    const received = proxy.waiting.get(number);
    proxy.waiting.delete(number);
    proxy.next = Math.max(proxy.next, number + 1);
    if (!received) return;
    const octets = received.data.payload?.length ?? 0;
    proxy.waitingOctets -= octets;
    this.#options.budget.giveBack(octets);
    this.#options.deliver(received);
  }

  /** Nothing below `to` is waited for any more. */
  #advance(proxy: WriterProxy, to: number): void {
    for (const number of [...proxy.waiting.keys()].sort((a, b) => a - b)) if (number < to) this.#deliverWaiting(proxy, number);
    proxy.next = Math.max(proxy.next, to);
    proxy.reassembly.dropBelow(proxy.next);
    this.#deliverInOrder(proxy);
  }

  /** Acknowledges what is there and asks for what is not (8.4.12.3); partly arrived samples are asked for by fragment. */
  #acknowledgement(proxy: WriterProxy): ReaderAction[] {
    let missing = this.#missing(proxy);
    if (missing.length > 0) {
      const from = missing[0] as number;
      proxy.unanswered = from === proxy.unansweredFrom ? proxy.unanswered + 1 : 1;
      proxy.unansweredFrom = from;
      if (proxy.unanswered > LIMITS.unansweredRequests) {
        // A writer that never sends what it claims to have would hold up all that follows.
        this.#skipped += 1;
        this.#advance(proxy, from + 1);
        missing = this.#missing(proxy);
      }
    }
    const whole = missing.filter((number) => !proxy.reassembly.has(number));
    const actions: ReaderAction[] = [{ kind: 'ackNack', set: { base: proxy.next, numbers: whole }, isFinal: missing.length === 0 }];
    for (const sequenceNumber of missing) {
      const [base, ...others] = proxy.reassembly.missing(sequenceNumber);
      if (base !== undefined) actions.push({ kind: 'nackFrag', sequenceNumber, set: { base, numbers: [base, ...others] } });
    }
    return actions;
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
