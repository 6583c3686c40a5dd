import { printable } from '../text.ts';
import type { ShutdownAction, ShutdownCall, ShutdownSource, ShutdownStep } from './shutdown.ts';
import { MAX_REQUESTED_BY } from './shutdown-request.ts';

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
export function cutMessage(message: string): string {
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
    message: cutMessage(message),
    ended: outcome === 'in_progress' ? null : timestamp,
    boot_id,
  };
}

/**
 * The outcome of a request that an earlier run of the service left in progress. The last step succeeded if the machine has booted since,
 * even if the service was stopped in time to record it as completed. Other records are returned unchanged.
 */
export function settled(record: ShutdownRecord, bootId: string | null, timestamp: string): ShutdownRecord {
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
