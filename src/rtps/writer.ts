import { Attention } from './attention.ts';
import { LIMITS } from './limits.ts';
import type { NumberSet } from './number-set.ts';
import { type EntityId, FRAGMENT_OCTETS, type Guid } from './protocol.ts';
import { FIRST_HEARTBEAT_SECONDS, type MatchedReader, newProxy, type ReaderProxy } from './reader-proxy.ts';

export type { MatchedReader } from './reader-proxy.ts';

/** One sample in a writer's history (8.2.6, CacheChange). */
export interface Change {
  readonly sequenceNumber: number;
  /** Serialised; a function where readers of different kinds need different octets. Null: no payload. */
  readonly payload: Buffer | ((reader: MatchedReader) => Buffer) | null;
  readonly isKey: boolean;
  readonly inlineQos: Buffer | null;
  readonly timestampMs: number;
  /** Only this reader gets it; null: all. */
  readonly only: Guid | null;
  /** Replaces the earlier change of the same instance; null: history by depth alone. */
  readonly instance: string | null;
}

export interface WriterOptions {
  readonly entity: EntityId;
  /** Samples kept for late joiners and for sending again; Infinity keeps one change an instance (discovery). */
  readonly depth: number;
  readonly transientLocal: boolean;
  /** There is something to be polled for, after there was nothing. */
  readonly onBusy?: (writer: StatefulWriter) => void;
}

/** What is to be sent to one reader; whoever sends knows how to put it into datagrams. */
export type WriterAction =
  | { readonly kind: 'data'; readonly change: Change }
  | { readonly kind: 'fragments'; readonly change: Change; readonly numbers: readonly number[] }
  | { readonly kind: 'gap'; readonly numbers: readonly number[] }
  | { readonly kind: 'heartbeat'; readonly first: number; readonly last: number; readonly isFinal?: boolean };

export type SendToReader = (reader: MatchedReader, actions: readonly WriterAction[]) => void;

/** 8.4.2.2.3: heartbeats go on until everything is acknowledged, less and less often. */
const LAST_HEARTBEAT_SECONDS = 3;
/** A reader that asks for a heartbeat more often has no other way to say that it has heard one. */
const MOST_QUESTIONS = 5;
/** What waits for its budget to be sent again is looked at no more often than this. */
const RESEND_PAUSE_SECONDS = 0.05;

/**
 * A stateful writer (8.4.9): keeps the last samples, sends each to every matched reader, and to the reliable ones again until they
 * acknowledge. Pure: time comes in, what to send goes out. Times are monotonic seconds.
 */
export class StatefulWriter {
  readonly entity: EntityId;
  readonly #options: WriterOptions;
  readonly #history = new Map<number, Change>();
  readonly #proxies = new Map<Guid, ReaderProxy>();
  #last = 0;
  /** The last change that is not for one reader alone. */
  #lastForAll = 0;
  /** Proxies that may have something to be sent. */
  readonly #busy: Attention<ReaderProxy>;

  constructor(options: WriterOptions) {
    this.entity = options.entity;
    this.#options = options;
    this.#busy = new Attention(() => options.onBusy?.(this));
  }

  get readers(): MatchedReader[] {
    return [...this.#proxies.values()].map(({ reader }) => reader);
  }

  get readerCount(): number {
    return this.#proxies.size;
  }

  /** Nothing is to be polled for. */
  get isIdle(): boolean {
    return this.#busy.isIdle;
  }

  /** The number of its last change; 0: there was none. */
  get last(): number {
    return this.#last;
  }

  get historySize(): number {
    return this.#history.size;
  }

  /** Oldest first. */
  get history(): Change[] {
    return [...this.#history.values()];
  }

  isMatched(guid: Guid): boolean {
    return this.#proxies.has(guid);
  }

  /** Adds a sample; `poll` sends it. Returns its number. */
  write(change: Omit<Change, 'sequenceNumber'>): number {
    this.#last += 1;
    const sequenceNumber = this.#last;
    if (change.instance !== null) {
      for (const [number, earlier] of this.#history) if (earlier.instance === change.instance) this.#history.delete(number);
    }
    this.#history.set(sequenceNumber, { ...change, sequenceNumber });
    while (this.#history.size > this.#options.depth) this.#history.delete(this.#first());
    for (const proxy of this.#concerned(change.only, sequenceNumber)) {
      this.#busy.wake(proxy);
      // It is for the answer to a heartbeat that this waits.
      if (proxy.awaitsAnswer) {
        proxy.heartbeatAsked = true;
        proxy.heartbeatPeriodSeconds = FIRST_HEARTBEAT_SECONDS;
      }
    }
    if (this.#proxies.size === 0 && !this.#options.transientLocal) this.#history.clear();
    return sequenceNumber;
  }

  /** Removes the change of an instance. */
  forget(instance: string): void {
    for (const [number, change] of this.#history) if (change.instance === instance) this.#history.delete(number);
  }

  /** Adds a reader; one that was matched before begins anew, because it has forgotten. */
  match(reader: MatchedReader, nowSeconds: number): void {
    const proxy = newProxy(reader, this.#options, this.#last, nowSeconds);
    this.#drop(reader.guid);
    this.#proxies.set(reader.guid, proxy);
    this.#busy.wake(proxy);
  }

  /** Removes a reader, and what was for it alone. */
  unmatch(guid: Guid): void {
    this.#drop(guid);
    for (const [number, { only }] of this.#history) if (only === guid) this.#history.delete(number);
  }

  #drop(guid: Guid): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.#proxies.delete(guid);
    this.#busy.rest(proxy);
    this.#forgetAcknowledged();
  }

  /**
   * Who is to be told of a change now. What is for one reader alone the others are told to pass over when there is something for them
   * too: a writer of hundreds of readers would speak to all of them for each. A volatile one tells them at once, to be able to forget.
   */
  #concerned(only: Guid | null, sequenceNumber: number): Iterable<ReaderProxy> {
    if (only === null || !this.#options.transientLocal) {
      this.#lastForAll = sequenceNumber;
      return this.#proxies.values();
    }
    const proxy = this.#proxies.get(only);
    if (proxy) proxy.owed = sequenceNumber;
    return proxy ? [proxy] : [];
  }

  /** The last change that this reader must have. */
  #owedTo({ owed }: ReaderProxy): number {
    return Math.max(owed, this.#lastForAll);
  }

  onAckNack(guid: Guid, set: NumberSet, count: number, isFinal: boolean): void {
    const proxy = this.#proxies.get(guid);
    // The same count again is the same datagram again. A lower one is not refused: a reader that began anew counts anew.
    if (!proxy?.reader.reliable || count === proxy.lastAckNackCount) return;
    proxy.lastAckNackCount = count;
    const { base, numbers } = without(set, proxy.reader.numberOffset ?? 0);
    // Some ask with base 0 for the first heartbeat (Fast DDS); nothing is acknowledged by that. One that lies ahead is no news either.
    const acknowledged = Math.min(Math.max(base - 1, 0), this.#last);
    proxy.acknowledged = acknowledged;
    const isQuestion = !isFinal && numbers.length === 0 && base <= 1;
    if (isQuestion && !proxy.heartbeatAsked) proxy.questions += 1;
    if (!isQuestion || proxy.questions > MOST_QUESTIONS) proxy.awaitsAnswer = false;
    // What it was sent once and misses; it says so of everything at once, so what it asked for before is forgotten.
    proxy.requested = new Set(numbers.filter((number) => number > 0 && number < proxy.next));
    for (const number of proxy.requestedFragments.keys()) if (number < base) proxy.requestedFragments.delete(number);
    // It asks for the first heartbeat, which it may have missed: also when there is nothing else to say.
    if (!isFinal && numbers.length === 0 && (acknowledged < this.#owedTo(proxy) || base <= 1)) proxy.heartbeatAsked = true;
    if (proxy.heartbeatAsked || !this.#isSettled(proxy)) this.#busy.wake(proxy);
    else this.#busy.rest(proxy);
    this.#forgetAcknowledged();
  }

  onNackFrag(guid: Guid, wireNumber: number, { numbers }: NumberSet): void {
    const proxy = this.#proxies.get(guid);
    const sequenceNumber = wireNumber - (proxy?.reader.numberOffset ?? 0);
    if (!proxy?.reader.reliable || sequenceNumber < 1 || sequenceNumber >= proxy.next || numbers.length === 0) return;
    proxy.requestedFragments.set(sequenceNumber, numbers);
    if (proxy.requestedFragments.size > this.#history.size + 1) proxy.requestedFragments.clear();
    this.#busy.wake(proxy);
  }

  /** Sends what is due now. Returns when to be called again: monotonic seconds, Infinity when nothing is waiting. */
  poll(nowSeconds: number, send: SendToReader): number {
    return this.#busy.poll(nowSeconds, (proxy) => {
      const actions = this.#actionsFor(proxy, nowSeconds);
      if (actions.length > 0) send(proxy.reader, actions);
      return this.#isSettled(proxy) ? null : this.#deadlineOf(proxy, nowSeconds);
    });
  }

  #actionsFor(proxy: ReaderProxy, nowSeconds: number): WriterAction[] {
    const { reader } = proxy;
    const actions: WriterAction[] = [];
    const irrelevant: number[] = [];
    const owed = this.#owedTo(proxy);
    const isNews = proxy.next <= owed;
    const isRequested = proxy.requested.size > 0 || proxy.requestedFragments.size > 0;
    const isDue = proxy.acknowledged < owed && nowSeconds >= proxy.heartbeatAt;
    // A heartbeat counts also what is for others: with it comes what there is to pass over.
    if ((isNews || isRequested || isDue || proxy.heartbeatAsked) && !proxy.awaitsAnswer) {
      // What left the history before it could be sent: the heartbeat says that it is gone, one by one is told only what is in between.
      let number = Math.max(proxy.next, this.#first());
      for (; number <= this.#last; number += 1) this.#add(proxy, number, actions, irrelevant);
      proxy.next = this.#last + 1;
      if (isNews) proxy.heartbeatPeriodSeconds = FIRST_HEARTBEAT_SECONDS;
    }
    if (isRequested) this.#addRequested(proxy, nowSeconds, actions, irrelevant);
    if (irrelevant.length > 0 && reader.reliable) actions.push({ kind: 'gap', numbers: [...new Set(irrelevant)].sort((a, b) => a - b) });
    if (reader.reliable && (actions.length > 0 || proxy.heartbeatAsked || isDue)) {
      // Where numbers begin far above 1 what comes before the first heartbeat cannot be placed: this one says no more than where that is.
      if (reader.numberOffset && proxy.acknowledged < 0 && actions.length > 0)
        actions.unshift({ kind: 'heartbeat', first: this.#first(), last: this.#first() - 1, isFinal: true });
      actions.push(this.#heartbeat(proxy));
      proxy.heartbeatAsked = false;
      proxy.heartbeatAt = nowSeconds + proxy.heartbeatPeriodSeconds;
      proxy.heartbeatPeriodSeconds = Math.min(2 * proxy.heartbeatPeriodSeconds, LAST_HEARTBEAT_SECONDS);
    }
    return actions;
  }

  /**
   * A reader that wants no history begins where its first heartbeat ends (Cyclone DDS): until it has answered one it is told of what was
   * there before it came, and no more. A sample whose data is lost on the way would be lost for good otherwise.
   */
  #heartbeat({ awaitsAnswer, from }: ReaderProxy): WriterAction {
    if (awaitsAnswer) return { kind: 'heartbeat', first: Math.min(this.#first(), from + 1), last: from };
    return { kind: 'heartbeat', first: this.#first(), last: this.#last };
  }

  #add(proxy: ReaderProxy, number: number, actions: WriterAction[], irrelevant: number[]): void {
    const change = this.#changeFor(proxy, number);
    if (change) actions.push({ kind: 'data', change });
    else irrelevant.push(number);
  }

  /** What a reader may have under this number; undefined: nothing, or nothing any more. */
  #changeFor({ from, reader }: ReaderProxy, number: number): Change | undefined {
    const change = this.#history.get(number);
    return change && number > from && (change.only === null || change.only === reader.guid) ? change : undefined;
  }

  /** Sends again within the reader's budget; what is beyond it waits. */
  #addRequested(proxy: ReaderProxy, nowSeconds: number, actions: WriterAction[], irrelevant: number[]): void {
    const passed = Math.max(0, nowSeconds - proxy.resendAtSeconds);
    proxy.resendOctets = Math.min(LIMITS.resendOctets, proxy.resendOctets + passed * LIMITS.resendOctets);
    proxy.resendAtSeconds = nowSeconds;
    for (const [number, numbers] of proxy.requestedFragments) {
      if (proxy.resendOctets <= 0) return;
      proxy.requestedFragments.delete(number);
      if (proxy.requested.has(number)) continue;
      const change = this.#changeFor(proxy, number);
      if (change) actions.push({ kind: 'fragments', change, numbers });
      else irrelevant.push(number);
      proxy.resendOctets -= numbers.length * FRAGMENT_OCTETS;
    }
    for (const number of [...proxy.requested].sort((a, b) => a - b)) {
      if (proxy.resendOctets <= 0) return;
      proxy.requested.delete(number);
      this.#add(proxy, number, actions, irrelevant);
      const payload = this.#history.get(number)?.payload;
      proxy.resendOctets -= 64 + (payload instanceof Buffer ? payload.length : 0);
    }
  }

  /** When it is to be looked at again: its next heartbeat is due, or what it asked for has its budget. */
  #deadlineOf({ heartbeatAt, requested, requestedFragments, resendOctets }: ReaderProxy, nowSeconds: number): number {
    if (requested.size === 0 && requestedFragments.size === 0) return heartbeatAt;
    return Math.min(heartbeatAt, nowSeconds + Math.max(0, -resendOctets / LIMITS.resendOctets) + RESEND_PAUSE_SECONDS);
  }

  #isSettled(proxy: ReaderProxy): boolean {
    const owed = this.#owedTo(proxy);
    const hasAll = proxy.acknowledged >= owed && proxy.requested.size === 0 && proxy.requestedFragments.size === 0;
    return proxy.next > owed && (!proxy.reader.reliable || hasAll);
  }

  /** Smallest number in the history, or the next one when it is empty: what is below it will not be sent again (8.3.7.5). */
  #first(): number {
    for (const number of this.#history.keys()) return number;
    return this.#last + 1;
  }

  /** A volatile writer keeps nothing that everybody has. */
  #forgetAcknowledged(): void {
    if (this.#options.transientLocal || this.#history.size === 0) return;
    let everybody = this.#last;
    for (const { reader, acknowledged } of this.#proxies.values()) if (reader.reliable) everybody = Math.min(everybody, acknowledged);
    for (const number of this.#history.keys()) if (number <= everybody) this.#history.delete(number);
  }
}

/** What a reader says in numbers that are ahead, in the writer's own. */
function without(set: NumberSet, offset: number): NumberSet {
  return offset === 0 ? set : { base: set.base - offset, numbers: set.numbers.map((number) => number - offset) };
}
