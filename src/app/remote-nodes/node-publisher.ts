import type { Alert } from '../../core/alerts/alert.ts';
import type { Stamp } from '../../core/alerts/node-watch.ts';
import { TokenBucket } from '../../core/alerts/rate-limit.ts';
import type { Sender } from '../../ros/graph.ts';

/** Two publishers of one name are a conflict once both have published for this long: a restart does not need as long. */
export const CONFLICT_SECONDS = 5;
/** For this long a rival cannot replace the established publisher with which it was in conflict, and which may only be restarting. */
export const REPLACE_SECONDS = 60;
/** After this time at another address, that address is the publisher's home. */
const HOME_SECONDS = 3600;
/** Limit of other publishers that are remembered. */
const MAX_RIVALS = 4;
/** Limit of messages of each of them that are kept until it becomes the established publisher. */
const MAX_HELD = 32;

/** Rate limit of alerts about one name, so that a rival that comes and goes fills neither log nor disk. */
const ALERTS_PER_SECOND = 1 / 600;
const ALERTS_BURST = 5;

const NONE: readonly string[] = [];
/** The participant of a publisher of an earlier run. */
const UNKNOWN = '';

/** Another publisher of the name; with several participants if it is another host. */
interface Rival {
  sender: Sender;
  /** Monotonic seconds of its first status; null: it has sent alerts only. */
  firstSeconds: number | null;
  lastSeconds: number;
  isGone: boolean;
  /** It has published at the same time as the established publisher. */
  isConflict: boolean;
  held: Held[];
}

/** A message that counts only if its sender becomes the established publisher. `stamp`: of a status. */
interface Held {
  readonly stamp: Stamp | null;
  readonly deliver: () => void;
}

/** `held`: delivered again if the sender becomes the established publisher. `copy`: the established publisher sent it, too. */
export type Admission = 'accepted' | 'held' | 'copy' | 'refused';

/**
 * Decides whose messages count as those of one node: those of the established publisher, the participant whose statuses were received
 * first. Another participant succeeds it once it has left the graph or has missed a status, as after a restart. If both publish, the
 * established one is kept, unless the other one returns to the address where it was at home before. Times are monotonic seconds.
 */
export class NodePublisher {
  #established: Sender | null = null;
  #lastSeconds = Number.NEGATIVE_INFINITY;
  #isGone = false;
  /** Since when it has been established, at its present address. */
  #sinceSeconds = Number.NEGATIVE_INFINITY;
  #home: string | null = null;
  /** By address; those at the address of the established publisher by participant. */
  readonly #rivals = new Map<string, Rival>();
  /** Rivals without a message for this long are forgotten. */
  #rememberSeconds = REPLACE_SECONDS;
  /** The open alert about a conflict. */
  alert: Alert | null = null;
  readonly alertLimit = new TokenBucket(ALERTS_PER_SECOND, ALERTS_BURST);
  #keptUntilSeconds = Number.NEGATIVE_INFINITY;

  /**
   * Decides on a status. `silentSeconds`: after this time without a status, the established publisher has missed one. `isKnown`: the status
   * was received before. `deliver` delivers the status again.
   */
  takeStatus(sender: Sender, stamp: Stamp, isKnown: boolean, nowSeconds: number, silentSeconds: number, deliver: () => void): Admission {
    this.#rememberSeconds = Math.max(REPLACE_SECONDS, 2 * silentSeconds);
    if (this.#established === null || this.#isReturning(sender)) this.#establish(sender, nowSeconds);
    if (this.isEstablished(sender)) {
      if (sender.address !== this.#established?.address) this.#sinceSeconds = nowSeconds;
      if (this.#home === null || nowSeconds - this.#sinceSeconds >= HOME_SECONDS) this.#home = sender.address;
      this.#established = sender;
      this.#lastSeconds = nowSeconds;
      this.#isGone = false;
      if (this.#rivals.size > 0) this.#dropCopiesOf(stamp);
      return 'accepted';
    }
    if (isKnown && !this.#isAbsent(nowSeconds, silentSeconds)) return 'copy';
    const rival = this.#rivalOf(sender, nowSeconds);
    if (!rival) return 'refused';
    rival.firstSeconds ??= nowSeconds;
    const isPublishing = this.#established?.participant !== UNKNOWN;
    const sinceSeconds = Math.max(rival.firstSeconds, this.#sinceSeconds);
    if (isPublishing && this.#lastSeconds - sinceSeconds >= CONFLICT_SECONDS) rival.isConflict = true;
    if (rival.isConflict) rival.held = [];
    hold(rival, { stamp, deliver });
    this.succeed(nowSeconds, silentSeconds);
    return rival.isConflict ? 'refused' : 'held';
  }

  isEstablished({ participant }: Sender): boolean {
    return this.#established?.participant === participant;
  }

  /** Replaces an established publisher that has left or missed a status, and delivers the messages that were held back. */
  succeed(nowSeconds: number, silentSeconds: number): void {
    if (this.#rivals.size === 0) return;
    const isAbsent = this.#isAbsent(nowSeconds, silentSeconds);
    const isAbsentForLong = nowSeconds - this.#lastSeconds > REPLACE_SECONDS;
    const successor = [...this.#rivals.values()].find(
      ({ firstSeconds, isConflict, isGone }) => firstSeconds !== null && !isGone && (isConflict ? isAbsentForLong : isAbsent),
    );
    if (successor) this.#establish(successor.sender, successor.lastSeconds);
  }

  /**
   * A participant has no writer of the node's statuses any more. Returns whether it was the established publisher and has no successor
   * yet.
   */
  remove(participant: string, nowSeconds: number): boolean {
    for (const rival of this.#rivals.values()) if (rival.sender.participant === participant) rival.isGone = true;
    if (this.#established?.participant !== participant) return false;
    this.#isGone = true;
    this.succeed(nowSeconds, 0);
    return this.#isGone;
  }

  /** Whether a message comes from the node: from its established publisher, or from another process on the same host. */
  isNode(sender: Sender): boolean {
    return this.#established !== null && isSameHost(sender, this.#established) && !this.#rivals.get(sender.participant)?.isConflict;
  }

  /** Whether the sender publishes statuses under the name without being established. */
  isRival(sender: Sender): boolean {
    return !this.isEstablished(sender) && (this.#rivals.get(this.#keyOf(sender))?.firstSeconds ?? null) !== null;
  }

  /** Keeps a message that only the node itself may send, until the sender becomes its established publisher. */
  holdBack(sender: Sender, nowSeconds: number, deliver: () => void): void {
    const rival = this.isEstablished(sender) ? null : this.#rivalOf(sender, nowSeconds);
    if (rival && !rival.isConflict) hold(rival, { stamp: null, deliver });
  }

  /** The addresses of the publishers that are in conflict, the established one first; empty: there is none. */
  conflict(nowSeconds: number): readonly string[] {
    if (this.#rivals.size === 0) return NONE;
    this.#removeOutdated(nowSeconds);
    if (this.#established === null || this.#isGone) return NONE;
    const rivals = [...this.#rivals.values()].filter(({ isConflict, isGone }) => isConflict && !isGone);
    return rivals.length === 0 ? NONE : [this.#established.address, ...new Set(rivals.map(({ sender }) => sender.address))];
  }

  /** The address of the publisher, or if it has changed recently, the former one; null: not known. */
  get home(): string | null {
    return this.#home;
  }

  /** Expects the publisher of an earlier run at its address from this time on. */
  restore(address: string, fromSeconds: number, hasLeft: boolean): void {
    if (this.#established !== null) return;
    this.#home = address;
    this.#establish({ participant: UNKNOWN, address }, fromSeconds);
    this.#isGone = hasLeft;
  }

  /** Continues an open alert of an earlier run, which is kept until the publishers have been discovered again. */
  adopt(alert: Alert, nowSeconds: number): void {
    this.alert = alert;
    this.#keptUntilSeconds = nowSeconds + REPLACE_SECONDS;
  }

  /** Whether an alert about a conflict must stay open although no conflict is seen. */
  isKept(nowSeconds: number): boolean {
    return nowSeconds < this.#keptUntilSeconds;
  }

  #establish(sender: Sender, lastSeconds: number): void {
    const key = this.#keyOf(sender);
    const held = this.#rivals.get(key)?.held ?? [];
    this.#rivals.delete(key);
    this.#established = sender;
    this.#sinceSeconds = lastSeconds;
    this.#lastSeconds = lastSeconds;
    this.#isGone = false;
    for (const { deliver } of held) deliver();
  }

  /** Whether the sender is at home and the established publisher, which is another one, is not, or is not known. */
  #isReturning({ address, participant }: Sender): boolean {
    if (this.#established === null || address !== this.#home || participant === this.#established.participant) return false;
    return this.#established.address !== address || this.#established.participant === UNKNOWN;
  }

  #isAbsent(nowSeconds: number, silentSeconds: number): boolean {
    return this.#isGone || nowSeconds - this.#lastSeconds > silentSeconds;
  }

  #keyOf({ address, participant }: Sender): string {
    return address === this.#established?.address ? participant : address;
  }

  /** Null: too many are remembered. */
  #rivalOf(sender: Sender, nowSeconds: number): Rival | null {
    const key = this.#keyOf(sender);
    this.#removeOutdated(nowSeconds);
    let rival = this.#rivals.get(key);
    if (!rival) {
      if (this.#rivals.size >= MAX_RIVALS) {
        // Other hosts must not keep out a successor on the host of the established publisher.
        const other = [...this.#rivals].find(([address, one]) => address === one.sender.address);
        if (key === sender.address || !other) return null;
        this.#rivals.delete(other[0]);
      }
      rival = { sender, firstSeconds: null, lastSeconds: nowSeconds, isGone: false, isConflict: false, held: [] };
      this.#rivals.set(key, rival);
    }
    rival.sender = sender;
    rival.lastSeconds = nowSeconds;
    rival.isGone = false;
    return rival;
  }

  #removeOutdated(nowSeconds: number): void {
    for (const [key, { lastSeconds }] of this.#rivals) if (nowSeconds - lastSeconds > this.#rememberSeconds) this.#rivals.delete(key);
  }

  /** A sender that had only copies of the established publisher's statuses is another path of them, such as a relay. */
  #dropCopiesOf({ ms, print }: Stamp): void {
    for (const [key, rival] of this.#rivals) {
      const others = rival.held.filter(({ stamp }) => stamp?.ms !== ms || stamp.print !== print);
      if (others.length === 0 && rival.held.length > 0) this.#rivals.delete(key);
      rival.held = others;
    }
  }
}

function hold(rival: Rival, held: Held): void {
  rival.held.push(held);
  if (rival.held.length > MAX_HELD) rival.held.shift();
}

/** Whether two messages come from one participant, or from two of one host. */
export function isSameHost(a: Sender, b: Sender): boolean {
  return a.participant === b.participant || a.address === b.address;
}
