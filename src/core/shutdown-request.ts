import { SHUTDOWN_REASONS, type ShutdownCall, type ShutdownReason } from './shutdown.ts';
import { printable } from './text.ts';

/** A call whose every field is as it should be. */
export interface ShutdownRequest {
  readonly reason: ShutdownReason;
  readonly requestedBy: string;
  /** Allowed for the whole procedure. */
  readonly timeoutSeconds: number;
}

export type CheckedCall =
  | { readonly ok: true; readonly request: ShutdownRequest }
  /** Every wrong field at once: its name, what was found, what is allowed. */
  | { readonly ok: false; readonly message: string };

export const MAX_REQUESTED_BY = 128;
export const MAX_TIMEOUT_SECONDS = 300;

/** Control characters, invisible format characters (they can turn a line's direction around), lone surrogates, unassigned and private ones, line separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;
/** A character takes two units of a string at most: beyond this nothing needs to be looked at. */
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

/** Judges the fields of a call, whatever they hold. The work does not grow with what was sent. */
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
