import { isVisible, printable } from '../text.ts';

/** Reason of a safe shutdown. */
export const SHUTDOWN_REASONS = ['OVERTEMP', 'CRITICAL_ALERT', 'EMERGENCY', 'MAINTENANCE', 'POWER_LOW', 'MANUAL', 'USER_REQUEST'] as const;
export type ShutdownReason = (typeof SHUTDOWN_REASONS)[number];

/** A request as received on /safe_shutdown, not validated. */
export interface ShutdownCall {
  readonly reason: string;
  readonly requested_by: string;
  /** Time limit of the whole procedure in seconds; may be NaN or infinite. */
  readonly timeout: number;
}

/** Origin of a call; null: unknown (rclnodejs does not provide it). */
export interface ShutdownSource {
  readonly address: string | null;
  /** The sender's UDP port. */
  readonly port: number | null;
  /** Name of the local user whose program called. */
  readonly user: string | null;
}

/** The caller on DDS, according to its datagrams. */
export interface DdsCaller {
  readonly address: string;
  readonly port: number;
  /** Whether the call came from this machine. */
  readonly local: boolean;
  /** Local ports at which the caller's participant receives; null: it receives on another machine. */
  readonly receivingPorts: readonly number[] | null;
  /** Challenges the participant to prove that it receives at its address; resolves with the result within half a second. */
  readonly prove: () => Promise<boolean>;
  /**
   * Marks the call as handled; false: it was handled before and is a repetition. To be called after the caller was authenticated, because
   * a forged call may carry the number of a later genuine one.
   */
  readonly isNew: () => boolean;
}

/** The caller. Null: the transport itself admits only authorized callers (rclnodejs with SROS2). */
export interface ShutdownCaller {
  readonly dds: DdsCaller | null;
  /** Whether the call may be meant for another machine: it used the shared name /safe_shutdown, which others offer now, too. */
  readonly mayBeForAnother: () => boolean;
}

/** The response on /safe_shutdown. */
export interface ShutdownReply {
  /** Accepted and started. */
  readonly success: boolean;
  readonly message: string;
}

/**
 * Handles a call; never rejects. The response is due within a second, regardless of the procedure. Null: no response is sent, because the
 * call already received one, or because it is not allowed here and may be meant for another machine.
 */
export type ShutdownHandler = (call: ShutdownCall, caller: ShutdownCaller) => Promise<ShutdownReply | null>;

export const SHUTDOWN_ACTIONS = ['poweroff', 'reboot', 'halt', 'dry-run'] as const;
export type ShutdownAction = (typeof SHUTDOWN_ACTIONS)[number];

export const SHUTDOWN_STATES = ['in_progress', 'completed', 'aborted'] as const;
export type ShutdownState = (typeof SHUTDOWN_STATES)[number];
export const SHUTDOWN_STEPS = ['announce', 'hooks', 'stop_units', 'store', 'power'] as const;
export type ShutdownStep = (typeof SHUTDOWN_STEPS)[number];

/** Progress of a safe shutdown, as published on /shutdown_status and /events. */
export interface ShutdownProgress {
  /** Sortable unique id of the request, constant for the whole procedure. */
  readonly request_id: string;
  readonly state: ShutdownState;
  readonly step: ShutdownStep;
  readonly reason: ShutdownReason;
  readonly requested_by: string;
  /** Action of the last step. */
  readonly action: ShutdownAction;
  /** Seconds until the deadline; 0 once it has passed. */
  readonly seconds_left: number;
  /** Human-readable description. */
  readonly message: string;
  readonly timestamp: string;
}

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
export type ExitKind = 'ended' | 'terminated' | 'killed';

export interface RunningItem {
  /** Null on success, else the problem. Never rejects. */
  readonly ended: Promise<string | null>;
  /** Ends the process and its children: SIGTERM, then SIGKILL after the grace. Resolves soon after that at the latest. */
  end(graceSeconds: number): Promise<ExitKind>;
}

/** One hook, or one unit to stop. */
export interface StepItem {
  readonly name: string;
  start(context: ShutdownContext): RunningItem;
}

/** Lists the items of a step, which are run one after the other. Rejects if they cannot be determined. */
export type ListItems = () => Promise<readonly StepItem[]>;

/** Performs the last step. */
export interface PowerControl {
  /** Determines in the background what refusal() returns; resolves when that is known. */
  prepare(action: ShutdownAction): Promise<void>;
  /** Why this action is impossible here, as a continuation of "safe_shutdown.action is …"; null: it is possible. Takes at most 0.5 s. */
  refusal(action: ShutdownAction): Promise<string | null>;
  /** Which inhibitor locks forbid the shutdown now, unless the reason overrides them; null: none. Takes at most 0.5 s. */
  inhibition(action: ShutdownAction, reason: ShutdownReason): Promise<string | null>;
  /** Resolves when the machine is shutting down (or at once, for dry-run); rejects if it is not, or if a lock forbids it by then. */
  perform(context: ShutdownContext): Promise<void>;
  /** After perform(): whether the machine is still shutting down; null: unknown. */
  isGoingDown(): Promise<boolean | null>;
}

/** Storage of requests. */
export interface ShutdownRecords {
  /** Records a request or its outcome. Resolves once that is durable, or after a short time if the disk does not keep up. */
  recordShutdown(record: ShutdownRecord): Promise<void>;
  /** Newest first. `accepted` true: only accepted requests; false: only refused ones; null: all. */
  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]>;
}

export interface ShutdownQuery {
  readonly accepted: boolean | null;
  readonly limit: number;
}

/** `interrupted`: the service or the machine ended before the procedure did. */
export const SHUTDOWN_OUTCOMES = ['refused', 'in_progress', 'completed', 'aborted', 'interrupted'] as const;
export type ShutdownOutcome = (typeof SHUTDOWN_OUTCOMES)[number];

/** Record of a call of /safe_shutdown, or of several refused ones in a row. */
export interface ShutdownRecord {
  /** Sortable and unique. */
  readonly request_id: string;
  /** Time of the call; of several calls, the first. */
  readonly timestamp: string;
  /** As received, truncated and made printable. */
  readonly reason: string;
  readonly requested_by: string;
  /** Seconds; null: not a finite number. */
  readonly timeout: number | null;
  /** Origin of the call: IP address and UDP port; null: the transport does not provide it. */
  readonly address: string | null;
  readonly port: number | null;
  /** Local user whose program called; several possible ones separated by commas. Null: unknown. */
  readonly user: string | null;
  /** Number of calls that this record stands for. */
  readonly calls: number;
  readonly action: ShutdownAction;
  readonly outcome: ShutdownOutcome;
  /** The last step begun; null: none. */
  readonly step: ShutdownStep | null;
  readonly message: string;
  /** Time of the outcome; of several calls, the last. Null: in progress. */
  readonly ended: string | null;
  /** The kernel's boot id at the time of the call. */
  readonly boot_id: string | null;
}

const MAX_REASON = 64;
const MAX_USER = 128;
const MAX_MESSAGE = 500;
const WENT_DOWN = 'the machine went down and was started again';

/** Truncates a message to a length that can be stored and published. */
export function truncateMessage(message: string): string {
  return printable(message, MAX_MESSAGE);
}

/** The record of a call that was just accepted or refused. */
export function recordOf(
  call: ShutdownCall,
  { address, port, user }: ShutdownSource,
  decided: Pick<ShutdownRecord, 'request_id' | 'timestamp' | 'action' | 'outcome' | 'message' | 'boot_id'>,
): ShutdownRecord {
  const { action, boot_id, message, outcome, request_id, timestamp } = decided;
  return {
    request_id,
    timestamp,
    reason: printable(String(call.reason), MAX_REASON),
    requested_by: printable(String(call.requested_by), MAX_REQUESTED_BY),
    timeout: Number.isFinite(call.timeout) ? call.timeout : null,
    address: address === null ? null : printable(address, MAX_REASON),
    port,
    user: user === null ? null : printable(user, MAX_USER),
    calls: 1,
    action,
    outcome,
    step: null,
    message: truncateMessage(message),
    ended: outcome === 'in_progress' ? null : timestamp,
    boot_id,
  };
}

/**
 * The outcome of a request that an earlier run of the service left in progress. The last step succeeded if the machine has booted since,
 * even if the service was stopped in time to record it as completed. Other records are returned unchanged.
 */
export function resolvedOutcome(record: ShutdownRecord, bootId: string | null, timestamp: string): ShutdownRecord {
  const { action, ended, outcome, step } = record;
  if (outcome !== 'in_progress' && outcome !== 'completed') return record;
  const hasBooted = record.boot_id !== null && bootId !== null && record.boot_id !== bootId;
  if (step === 'power' && action !== 'dry-run' && hasBooted) {
    if (record.message === WENT_DOWN) return record;
    return { ...record, outcome: 'completed', message: WENT_DOWN, ended: ended ?? timestamp };
  }
  if (outcome === 'completed') return record;
  const what = hasBooted ? 'the machine went down' : 'the service ended';
  const message = `interrupted: ${what} during the step ${record.step ?? 'announce'}`;
  return { ...record, outcome: 'interrupted', message, ended: timestamp };
}

/** A call whose fields are all valid. */
export interface ShutdownRequest {
  readonly reason: ShutdownReason;
  readonly requestedBy: string;
  /** Time limit of the whole procedure. */
  readonly timeoutSeconds: number;
}

export type CheckedCall =
  | { readonly ok: true; readonly request: ShutdownRequest }
  /** Every invalid field at once: its name, the value found, the values allowed. */
  | { readonly ok: false; readonly message: string };

export const MAX_REQUESTED_BY = 128;
export const MAX_TIMEOUT_SECONDS = 300;

/** A character has at most two UTF-16 units, so longer strings are rejected without scanning them. */
const UNITS_PER_CHARACTER = 2;

const SHOWN_CHARACTERS = 40;

function shown(value: unknown): string {
  if (typeof value !== 'string') return typeof value === 'number' ? String(value) : `a ${typeof value}`;
  if (value === '') return 'nothing';
  const length = value.length > SHOWN_CHARACTERS ? ` (${value.length} characters)` : '';
  return `"${printable(value, SHOWN_CHARACTERS)}"${length}`;
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > MAX_REQUESTED_BY * UNITS_PER_CHARACTER) return false;
  return [...value].length <= MAX_REQUESTED_BY && isVisible(value);
}

function isTimeout(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value <= MAX_TIMEOUT_SECONDS;
}

/** Checks the fields of a call. The work does not grow with the size of the call. */
export function checkCall(call: ShutdownCall): CheckedCall {
  const { reason, requested_by: requestedBy, timeout } = call;
  const wrong: string[] = [];
  const refuse = (field: string, value: unknown, allowed: string): void => {
    wrong.push(`${field}: found ${shown(value)}, allowed: ${allowed}`);
  };
  if (!SHUTDOWN_REASONS.includes(reason as never)) refuse('reason', reason, `one of ${SHUTDOWN_REASONS.join(', ')}`);
  if (!isName(requestedBy)) refuse('requested_by', requestedBy, `1 to ${MAX_REQUESTED_BY} printable characters`);
  if (!isTimeout(timeout)) refuse('timeout', timeout, `seconds above 0, at most ${MAX_TIMEOUT_SECONDS}`);
  if (wrong.length > 0) return { ok: false, message: wrong.join('; ') };
  return { ok: true, request: { reason: reason as ShutdownReason, requestedBy, timeoutSeconds: timeout } };
}

/** Whether a failing step aborts the shutdown or is skipped. */
export type OnFailure = 'skip' | 'abort';

/** A machine in danger shuts down despite failures; a requested shutdown aborts so that the failure can be fixed. */
export const ON_FAILURE: Readonly<Record<ShutdownReason, OnFailure>> = {
  OVERTEMP: 'skip',
  CRITICAL_ALERT: 'skip',
  EMERGENCY: 'skip',
  POWER_LOW: 'skip',
  MAINTENANCE: 'abort',
  MANUAL: 'abort',
  USER_REQUEST: 'abort',
};

/** Reasons that do not wait for the end of a shutdown in progress. */
const ESCALATING: ReadonlySet<ShutdownReason> = new Set(['EMERGENCY', 'OVERTEMP']);

/** Whether a request escalates a shutdown in progress that would abort on a failure: it continues for the reason of this request. */
export function isEscalation(reason: ShutdownReason, inProgress: ShutdownReason): boolean {
  return ESCALATING.has(reason) && ON_FAILURE[inProgress] === 'abort';
}

/** How a step ended. `out_of_time`: its time limit was reached; `stopped`: the service was stopped. */
export type StepOutcome = 'done' | 'failed' | 'out_of_time' | 'stopped';

/** The step in progress, or the final outcome. */
export type ShutdownPhase = ShutdownStep | 'completed' | 'aborted';

type Row = Readonly<Record<StepOutcome, ShutdownPhase | Readonly<Record<OnFailure, ShutdownPhase>>>>;

/**
 * The successor of each step. A timeout never aborts: the rest is skipped, except the store and the last step. The store never aborts
 * either: hooks have run and units are stopped by then, and losing unwritten records (disk full) is the smaller loss.
 */
const NEXT: Readonly<Record<ShutdownStep, Row>> = {
  announce: { done: 'hooks', failed: 'hooks', out_of_time: 'store', stopped: 'aborted' },
  hooks: { done: 'stop_units', failed: { skip: 'stop_units', abort: 'aborted' }, out_of_time: 'store', stopped: 'aborted' },
  stop_units: { done: 'store', failed: { skip: 'store', abort: 'aborted' }, out_of_time: 'store', stopped: 'aborted' },
  store: { done: 'power', failed: 'power', out_of_time: 'power', stopped: 'aborted' },
  power: { done: 'completed', failed: 'aborted', out_of_time: 'aborted', stopped: 'aborted' },
};

export function nextPhase(step: ShutdownStep, outcome: StepOutcome, reason: ShutdownReason): ShutdownPhase {
  const next = NEXT[step][outcome];
  return typeof next === 'string' ? next : next[ON_FAILURE[reason]];
}

/** Times of the procedure, in seconds from the start. */
export interface ShutdownTimes {
  /** When running hooks and units are terminated (SIGTERM). */
  readonly terminateAt: number;
  /** Longest time from SIGTERM to SIGKILL. */
  readonly graceSeconds: number;
  /** The store may write until `deadline`, and for at least `storeSeconds`. */
  readonly deadline: number;
  readonly storeSeconds: number;
}

/** Reserve at the end for hanging steps, the store and the power-off, a third each: this share of the timeout, up to a maximum. */
const RESERVE_SHARE = 0.25;
const MAX_RESERVE_SECONDS = 6;

/** Divides the timeout so that the last step begins before the deadline even if every earlier step hangs. */
export function shutdownTimes(timeoutSeconds: number): ShutdownTimes {
  const reserve = Math.min(timeoutSeconds * RESERVE_SHARE, MAX_RESERVE_SECONDS);
  return { terminateAt: timeoutSeconds - reserve, graceSeconds: reserve / 3, storeSeconds: reserve / 3, deadline: timeoutSeconds };
}
