import { LIMITS } from '../limits.ts';
import type { NumberSet } from '../wire/number-set.ts';
import { type EntityId, FRAGMENT_OCTETS, type Guid } from '../wire/protocol.ts';
import { PollQueue } from './poll-queue.ts';
import { FIRST_HEARTBEAT_SECONDS, type MatchedReader, newProxy, type ReaderProxy } from './reader-proxy.ts';

export type { MatchedReader } from './reader-proxy.ts';

/** One sample in a writer's history (8.2.6, CacheChange). */
export interface Change {
  readonly sequenceNumber: number;
  /** Serialized; a function where the octets depend on the reader. Null: no payload. */
  readonly payload: Buffer | ((reader: MatchedReader) => Buffer) | null;
  readonly isKey: boolean;
  readonly inlineQos: Buffer | null;
  readonly timestampMs: number;
  /** The only reader that receives it; null: all. */
  readonly only: Guid | null;
  /** Replaces the earlier change of the same instance; null: history by depth alone. */
  readonly instance: string | null;
}

export interface WriterOptions {
  readonly entity: EntityId;
  /** Samples kept for late joiners and for resending; Infinity keeps one change per instance (discovery). */
  readonly depth: number;
  readonly transientLocal: boolean;
  /** Its samples follow one another regularly, so the next one shows soon whether one was lost. */
  readonly isPeriodic?: boolean;
  /** The writer has left the idle state and must be polled. */
  readonly onBusy?: (writer: StatefulWriter) => void;
}

/** Submessages to send to one reader; `Packer` makes datagrams of them. */
export type WriterAction =
  | { readonly kind: 'data'; readonly change: Change }
  | { readonly kind: 'fragments'; readonly change: Change; readonly numbers: readonly number[] }
  | { readonly kind: 'gap'; readonly numbers: readonly number[] }
  | { readonly kind: 'heartbeat'; readonly first: number; readonly last: number; readonly isFinal?: boolean };

export type SendToReader = (reader: MatchedReader, actions: readonly WriterAction[], writer: EntityId, nowSeconds: number) => void;

/** 8.4.2.2.3: heartbeats are repeated until everything is acknowledged, with a period that doubles up to this. */
const LAST_HEARTBEAT_SECONDS = 3;
/** Samples of a periodic writer that may be unacknowledged before one requests an acknowledgement. */
const UNACKNOWLEDGED = 4;
/** Longest period to which UNACKNOWLEDGED applies: acknowledgements also show that the path works (`peers.ts`). */
const LONGEST_PERIOD_SECONDS = 1.2;
/** After this many requests for a heartbeat the reader counts as having received one: some readers acknowledge it in no other form. */
const MAX_HEARTBEAT_REQUESTS = 5;
/** Shortest time between two attempts to resend samples that exceed the reader's budget. */
const RESEND_PAUSE_SECONDS = 0.05;

/**
 * A stateful writer (8.4.9): keeps the last samples, sends each to every matched reader, and resends those that reliable readers request.
 * It has no clock and no I/O: time and the function that sends are parameters. Times are monotonic seconds.
 */
export class StatefulWriter {
  readonly entity: EntityId;
  readonly #options: WriterOptions;
  readonly #history = new Map<number, Change>();
  readonly #proxies = new Map<Guid, ReaderProxy>();
  #last = 0;
  /** The last change that is not for one reader alone. */
  #lastForAll = 0;
  /** Proxies of readers for which something may have to be sent. */
  readonly #busy: PollQueue<ReaderProxy>;

  constructor(options: WriterOptions) {
    this.entity = options.entity;
    this.#options = options;
    this.#busy = new PollQueue(() => options.onBusy?.(this));
  }

  get readers(): MatchedReader[] {
    return [...this.#proxies.values()].map(({ reader }) => reader);
  }

  get readerCount(): number {
    return this.#proxies.size;
  }

  /** True: nothing is due, so `poll` need not be called. */
  get isIdle(): boolean {
    return this.#busy.isIdle;
  }

  /** Sequence number of the last change; 0: none yet. */
  get last(): number {
    return this.#last;
  }

  /** Oldest first. */
  get history(): Change[] {
    return [...this.#history.values()];
  }

  isMatched(guid: Guid): boolean {
    return this.#proxies.has(guid);
  }

  /** Adds a sample, which `poll` sends. Returns its sequence number. */
  write(change: Omit<Change, 'sequenceNumber'>): number {
    this.#forgetAcknowledged();
    this.#last += 1;
    const sequenceNumber = this.#last;
    if (change.instance !== null) {
      for (const [number, earlier] of this.#history) if (earlier.instance === change.instance) this.#history.delete(number);
    }
    this.#history.set(sequenceNumber, { ...change, sequenceNumber });
    while (this.#history.size > this.#options.depth) this.#history.delete(this.#first());
    for (const proxy of this.#recipientsOf(change.only, sequenceNumber)) {
      this.#busy.wake(proxy);
      // The sample is sent once the reader has responded to a heartbeat.
      if (proxy.awaitsAnswer) {
        proxy.heartbeatRequested = true;
        proxy.heartbeatPeriodSeconds = FIRST_HEARTBEAT_SECONDS;
      }
    }
    if (this.#proxies.size === 0 && !this.#options.transientLocal) this.#history.clear();
    return sequenceNumber;
  }

  /** Removes the changes of an instance from the history. */
  forget(instance: string): void {
    for (const [number, change] of this.#history) if (change.instance === instance) this.#history.delete(number);
  }

  /** Adds a reader. The state of a reader that is matched already is reset, because the reader has lost its own. */
  match(reader: MatchedReader, nowSeconds: number): void {
    const proxy = newProxy(reader, this.#options, this.#last, nowSeconds);
    this.#drop(reader.guid);
    this.#proxies.set(reader.guid, proxy);
    this.#busy.wake(proxy);
  }

  /** Requests an acknowledgement of a reader, again until one arrives. False: the reader sends none. */
  challenge(guid: Guid, nowSeconds: number): boolean {
    const proxy = this.#proxies.get(guid);
    if (!proxy?.reader.reliable) return false;
    proxy.acknowledged = -1;
    proxy.heartbeatRequested = true;
    proxy.heartbeatAt = nowSeconds;
    proxy.heartbeatPeriodSeconds = FIRST_HEARTBEAT_SECONDS;
    this.#busy.wake(proxy);
    return true;
  }

  /** Removes a reader and the changes that are for it alone. */
  unmatch(guid: Guid): void {
    this.#drop(guid);
    for (const [number, { only }] of this.#history) if (only === guid) this.#history.delete(number);
  }

  #drop(guid: Guid): void {
    const proxy = this.#proxies.get(guid);
    if (!proxy) return;
    this.#proxies.delete(guid);
    this.#busy.rest(proxy);
  }

  /**
   * The readers to which something must be sent for a change. If a change is for one reader alone, the others get a GAP with their next
   * change, since a writer with hundreds of readers would otherwise send hundreds of GAPs per change. A volatile writer sends the GAP at
   * once, because it needs all acknowledgements to drop the change.
   */
  #recipientsOf(only: Guid | null, sequenceNumber: number): Iterable<ReaderProxy> {
    if (only === null || !this.#options.transientLocal) {
      this.#lastForAll = sequenceNumber;
      return this.#proxies.values();
    }
    const proxy = this.#proxies.get(only);
    if (proxy) proxy.required = sequenceNumber;
    return proxy ? [proxy] : [];
  }

  /** The last change that this reader must have. */
  #lastRequiredBy({ required }: ReaderProxy): number {
    return Math.max(required, this.#lastForAll);
  }

  onAckNack(guid: Guid, set: NumberSet, count: number, isFinal: boolean): void {
    const proxy = this.#proxies.get(guid);
    // An equal count is a duplicate. A lower one is accepted, since a reader that was restarted counts from the beginning.
    if (!proxy?.reader.reliable || count === proxy.lastAckNackCount) return;
    const { base, numbers } = withoutOffset(set, proxy.reader.numberOffset ?? 0);
    // No reader has changes that were never written: the message is forged, or the reader was deceived, which the next heartbeat shows it.
    if (base > this.#last + 1) return;
    proxy.lastAckNackCount = count;
    // Fast DDS requests the first heartbeat with base 0, which acknowledges nothing.
    const acknowledged = Math.max(base - 1, 0);
    proxy.acknowledged = acknowledged;
    const isHeartbeatRequest = !isFinal && numbers.length === 0 && base <= 1;
    if (isHeartbeatRequest && !proxy.heartbeatRequested) proxy.heartbeatRequests += 1;
    if (!isHeartbeatRequest || proxy.heartbeatRequests > MAX_HEARTBEAT_REQUESTS) proxy.awaitsAnswer = false;
    // Every ACKNACK lists all missing changes, so it replaces the former requests. Changes not sent yet are not missing.
    proxy.requested = new Set(numbers.filter((number) => number > 0 && number < proxy.next));
    for (const number of proxy.requestedFragments.keys()) if (number < base) proxy.requestedFragments.delete(number);
    // The reader may have missed the first heartbeat, so its request gets a response even if nothing else is due.
    if (!isFinal && numbers.length === 0 && (acknowledged < this.#lastRequiredBy(proxy) || base <= 1)) proxy.heartbeatRequested = true;
    if (proxy.heartbeatRequested || !this.#isSettled(proxy)) this.#busy.wake(proxy);
    else this.#busy.rest(proxy);
  }

  onNackFrag(guid: Guid, wireNumber: number, { numbers }: NumberSet): void {
    const proxy = this.#proxies.get(guid);
    const sequenceNumber = wireNumber - (proxy?.reader.numberOffset ?? 0);
    if (!proxy?.reader.reliable || sequenceNumber < 1 || sequenceNumber >= proxy.next || numbers.length === 0) return;
    proxy.requestedFragments.set(sequenceNumber, numbers);
    if (proxy.requestedFragments.size > this.#history.size + 1) proxy.requestedFragments.clear();
    this.#busy.wake(proxy);
  }

  /** Sends what is due now. Returns when to poll again: monotonic seconds, Infinity when nothing is pending. */
  poll(nowSeconds: number, send: SendToReader): number {
    return this.#busy.poll(nowSeconds, (proxy) => {
      const actions = this.#actionsFor(proxy, nowSeconds);
      if (actions.length > 0) send(proxy.reader, actions, this.entity, nowSeconds);
      return this.#isSettled(proxy) ? null : this.#deadlineOf(proxy, nowSeconds);
    });
  }

  #actionsFor(proxy: ReaderProxy, nowSeconds: number): WriterAction[] {
    const { reader } = proxy;
    const actions: WriterAction[] = [];
    const irrelevant: number[] = [];
    const required = this.#lastRequiredBy(proxy);
    const hasNewChanges = proxy.next <= required;
    const isRequested = proxy.requested.size > 0 || proxy.requestedFragments.size > 0;
    const isDue = proxy.acknowledged < required && nowSeconds >= proxy.heartbeatAt;
    const periodSeconds = nowSeconds - proxy.sentAt;
    // The next sample is due before this heartbeat would be repeated, and is sent with one as well.
    const needsAnswer =
      !this.#options.isPeriodic ||
      !hasNewChanges ||
      isRequested ||
      proxy.heartbeatRequested ||
      periodSeconds > LONGEST_PERIOD_SECONDS ||
      required - proxy.acknowledged > UNACKNOWLEDGED;
    // A heartbeat also covers the changes for other readers, so it is sent together with the GAPs for them.
    if ((hasNewChanges || isRequested || isDue || proxy.heartbeatRequested) && !proxy.awaitsAnswer) {
      // The heartbeat excludes the changes that left the history unsent; GAPs are needed only for those above its first number.
      let number = Math.max(proxy.next, this.#first());
      for (; number <= this.#last; number += 1) this.#add(proxy, number, actions, irrelevant);
      proxy.next = this.#last + 1;
      if (hasNewChanges) {
        proxy.sentAt = nowSeconds;
        proxy.heartbeatPeriodSeconds = needsAnswer ? FIRST_HEARTBEAT_SECONDS : Math.max(FIRST_HEARTBEAT_SECONDS, 2 * periodSeconds);
      }
    }
    if (isRequested) this.#addRequested(proxy, nowSeconds, actions, irrelevant);
    if (irrelevant.length > 0 && reader.reliable) actions.push({ kind: 'gap', numbers: [...new Set(irrelevant)].sort((a, b) => a - b) });
    if (reader.reliable && (actions.length > 0 || proxy.heartbeatRequested || isDue)) {
      // A reader whose numbers begin far above 1 cannot order data before it has the first number, which this empty heartbeat contains.
      if (reader.numberOffset && proxy.acknowledged < 0 && actions.length > 0)
        actions.unshift({ kind: 'heartbeat', first: this.#first(), last: this.#first() - 1, isFinal: true });
      actions.push({ ...this.#heartbeat(proxy), isFinal: !needsAnswer });
      proxy.heartbeatRequested = false;
      proxy.heartbeatAt = nowSeconds + proxy.heartbeatPeriodSeconds;
      proxy.heartbeatPeriodSeconds = Math.min(2 * proxy.heartbeatPeriodSeconds, LAST_HEARTBEAT_SECONDS);
    }
    return actions;
  }

  /**
   * A volatile reader of Cyclone DDS begins after the last number of its first heartbeat. Until it has responded to one, heartbeats
   * therefore end with the last change before it was matched; otherwise a later sample that is lost in transit would never be requested.
   */
  #heartbeat({ awaitsAnswer, from }: ReaderProxy): Extract<WriterAction, { kind: 'heartbeat' }> {
    if (awaitsAnswer) return { kind: 'heartbeat', first: Math.min(this.#first(), from + 1), last: from };
    return { kind: 'heartbeat', first: this.#first(), last: this.#last };
  }

  #add(proxy: ReaderProxy, number: number, actions: WriterAction[], irrelevant: number[]): void {
    const change = this.#changeFor(proxy, number);
    if (change) actions.push({ kind: 'data', change });
    else irrelevant.push(number);
  }

  /** The change with this number; undefined: not in the history, or not for this reader. */
  #changeFor({ from, reader }: ReaderProxy, number: number): Change | undefined {
    const change = this.#history.get(number);
    return change && number > from && (change.only === null || change.only === reader.guid) ? change : undefined;
  }

  /** Resends within the reader's budget; further requests stay pending. */
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

  /** When to poll the reader again: when its next heartbeat is due, or when its budget allows to resend. */
  #deadlineOf({ heartbeatAt, requested, requestedFragments, resendOctets }: ReaderProxy, nowSeconds: number): number {
    if (requested.size === 0 && requestedFragments.size === 0) return heartbeatAt;
    return Math.min(heartbeatAt, nowSeconds + Math.max(0, -resendOctets / LIMITS.resendOctets) + RESEND_PAUSE_SECONDS);
  }

  #isSettled(proxy: ReaderProxy): boolean {
    const required = this.#lastRequiredBy(proxy);
    const hasAll = proxy.acknowledged >= required && proxy.requested.size === 0 && proxy.requestedFragments.size === 0;
    return proxy.next > required && (!proxy.reader.reliable || hasAll);
  }

  /** Smallest number in the history, or the next one when it is empty: lower ones are no longer available (8.3.7.5). */
  #first(): number {
    for (const number of this.#history.keys()) return number;
    return this.#last + 1;
  }

  /**
   * A volatile writer drops the changes that all readers have acknowledged, but not before the next change: an acknowledgement may be
   * forged, and the reader's own request follows within a second.
   */
  #forgetAcknowledged(): void {
    if (this.#options.transientLocal || this.#history.size === 0) return;
    let byAll = this.#last;
    for (const { reader, acknowledged } of this.#proxies.values()) if (reader.reliable) byAll = Math.min(byAll, acknowledged);
    for (const number of this.#history.keys()) if (number <= byAll) this.#history.delete(number);
  }
}

/** Converts the numbers on the wire to the writer's own. */
function withoutOffset(set: NumberSet, offset: number): NumberSet {
  return offset === 0 ? set : { base: set.base - offset, numbers: set.numbers.map((number) => number - offset) };
}
