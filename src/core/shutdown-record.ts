import type { ShutdownAction, ShutdownCall, ShutdownSource, ShutdownStep } from './shutdown.ts';
import { MAX_REQUESTED_BY } from './shutdown-request.ts';
import { printable } from './text.ts';

/** `interrupted`: the service or the machine ended before the procedure did. */
export const SHUTDOWN_OUTCOMES = ['refused', 'in_progress', 'completed', 'aborted', 'interrupted'] as const;
export type ShutdownOutcome = (typeof SHUTDOWN_OUTCOMES)[number];

/** What is kept of a call of /safe_shutdown; of many refused ones in a row, what is kept of all of them. */
export interface ShutdownRecord {
  /** Sortable and unique. */
  readonly request_id: string;
  /** When it was called; of several calls, the first. */
  readonly timestamp: string;
  /** As it was called, cut and made printable. */
  readonly reason: string;
  readonly requested_by: string;
  /** Seconds; null: not a finite number. */
  readonly timeout: number | null;
  /** Where the call came from: IP address and UDP port; null: the transport does not tell. */
  readonly address: string | null;
  readonly port: number | null;
  /** Whose program of this machine called; of several possible ones all, with commas. Null: not known. */
  readonly user: string | null;
  /** How many calls this stands for. */
  readonly calls: number;
  readonly action: ShutdownAction;
  readonly outcome: ShutdownOutcome;
  /** The last step that was begun; null: none. */
  readonly step: ShutdownStep | null;
  readonly message: string;
  /** When the outcome was known; of several calls, the last. Null: in progress. */
  readonly ended: string | null;
  /** The kernel's id of the boot during which it was called. */
  readonly boot_id: string | null;
}

const MAX_REASON = 64;
const MAX_USER = 128;
const MAX_MESSAGE = 500;
const WENT_DOWN = 'the machine went down and was started again';

/** Cuts a message for people to a length that can be kept and published. */
export function cutMessage(message: string): string {
  return printable(message, MAX_MESSAGE);
}

/** The record of a call that was just decided on. */
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
 * How a request ended that an earlier run of the service left in progress: whether the last step succeeded is told by whether the
 * machine has booted since, also where the service was told to end in time to note that it was completed. Other records are
 * returned as they are.
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
