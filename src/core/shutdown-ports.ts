import type { ShutdownAction, ShutdownReason } from './shutdown.ts';
import type { ShutdownRecord } from './shutdown-record.ts';

/** What the steps of a safe shutdown are told of it. */
export interface ShutdownContext {
  readonly requestId: string;
  readonly reason: ShutdownReason;
  readonly requestedBy: string;
  readonly action: ShutdownAction;
  /** Until the deadline, at least 0. */
  secondsLeft(): number;
}

/** How hard it was to end something: it had ended by itself, did so when asked, or had to be killed. */
export type EndedHow = 'ended' | 'terminated' | 'killed';

export interface RunningItem {
  /** Null: it did what it should; else what went wrong. Never rejects. */
  readonly ended: Promise<string | null>;
  /** Ends it and whatever it started: asks, and kills what is left after the grace. Resolves soon after that at the latest. */
  end(graceSeconds: number): Promise<EndedHow>;
}

/** One hook, or one unit to stop. */
export interface StepItem {
  readonly name: string;
  start(context: ShutdownContext): RunningItem;
}

/** A step that consists of several things, done one after the other. */
export interface StepRunner {
  /** What is to be done, in order. Rejects when that cannot be found out. */
  list(): Promise<readonly StepItem[]>;
}

/** Does the last step. */
export interface PowerControl {
  /** Finds out at leisure what refusal() tells; resolves when that is known. */
  prepare(action: ShutdownAction): Promise<void>;
  /** Why this action cannot be done here, in words that follow "safe_shutdown.action is …"; null: it can. Answers within half a second. */
  refusal(action: ShutdownAction): Promise<string | null>;
  /** Who forbids the machine to go down just now, where the reason respects that; null: nobody. Answers within half a second. */
  inhibition(action: ShutdownAction, reason: ShutdownReason): Promise<string | null>;
  /** Resolves when the machine is on its way down (or at once, for dry-run); rejects when it is not, or somebody forbids it by now. */
  perform(context: ShutdownContext): Promise<void>;
  /** After perform(): whether the machine is still on its way down; null: cannot be told. */
  isGoingDown(): Promise<boolean | null>;
}

/** Where requests are kept. */
export interface ShutdownBook {
  /** Records a request, or what became of it since: resolves once that is durable, or after a short while if the disk does not keep up. */
  recordShutdown(record: ShutdownRecord): Promise<void>;
  /** Newest first. `accepted`: only those, or only refused ones; null: all. */
  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]>;
}

export interface ShutdownQuery {
  readonly accepted: boolean | null;
  readonly limit: number;
}
