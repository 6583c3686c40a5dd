import type { ShutdownAction, ShutdownReason } from './shutdown.ts';
import type { ShutdownRecord } from './shutdown-record.ts';

/** Data about the shutdown for its steps. */
export interface ShutdownContext {
  readonly requestId: string;
  readonly reason: ShutdownReason;
  readonly requestedBy: string;
  readonly action: ShutdownAction;
  /** Seconds until the deadline, at least 0. */
  secondsLeft(): number;
}

/** How a process or unit ended: by itself, after SIGTERM, or after SIGKILL. */
export type EndedHow = 'ended' | 'terminated' | 'killed';

export interface RunningItem {
  /** Null on success, else the problem. Never rejects. */
  readonly ended: Promise<string | null>;
  /** Ends the process and its children: SIGTERM, then SIGKILL after the grace. Resolves soon after that at the latest. */
  end(graceSeconds: number): Promise<EndedHow>;
}

/** One hook, or one unit to stop. */
export interface StepItem {
  readonly name: string;
  start(context: ShutdownContext): RunningItem;
}

/** A step that consists of several items, run one after the other. */
export interface StepRunner {
  /** The items, in order. Rejects when they cannot be determined. */
  list(): Promise<readonly StepItem[]>;
}

/** Performs the last step. */
export interface PowerControl {
  /** Determines in the background what refusal() returns; resolves when that is known. */
  prepare(action: ShutdownAction): Promise<void>;
  /** Why this action cannot be done here, as a continuation of "safe_shutdown.action is …"; null: it can. Answers within half a second. */
  refusal(action: ShutdownAction): Promise<string | null>;
  /** Which inhibitor locks forbid the shutdown now, unless the reason overrides them; null: none. Answers within half a second. */
  inhibition(action: ShutdownAction, reason: ShutdownReason): Promise<string | null>;
  /** Resolves when the machine is shutting down (or at once, for dry-run); rejects when it is not, or a lock forbids it by now. */
  perform(context: ShutdownContext): Promise<void>;
  /** After perform(): whether the machine is still shutting down; null: unknown. */
  isGoingDown(): Promise<boolean | null>;
}

/** Storage of requests. */
export interface ShutdownBook {
  /** Records a request or its outcome. Resolves once that is durable, or after a short time if the disk does not keep up. */
  recordShutdown(record: ShutdownRecord): Promise<void>;
  /** Newest first. `accepted` true: only accepted requests; false: only refused ones; null: all. */
  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]>;
}

export interface ShutdownQuery {
  readonly accepted: boolean | null;
  readonly limit: number;
}
