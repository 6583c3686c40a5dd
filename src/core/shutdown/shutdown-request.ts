import { printable } from '../text.ts';
import { SHUTDOWN_REASONS, type ShutdownCall, type ShutdownReason } from './shutdown.ts';

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

/**
 * Control characters, invisible format characters (they can reverse a line's direction), lone surrogates, unassigned and private
 * characters, line separators.
 */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;
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
  return value.trim() !== '' && [...value].length <= MAX_REQUESTED_BY && !UNPRINTABLE.test(value);
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
