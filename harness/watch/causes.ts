import { constants } from 'node:os';
import type { Cause } from '../record/entries.ts';
import type { RunEnd } from './supervisor.ts';

/** How a process ended, as its parent is told: an exit status, or the name of a signal. */
export function endOfProcess(code: number | null, signal: string | null): RunEnd {
  if (signal !== null) return { cause: 'signal', detail: signalName(signal) };
  return code === null ? { cause: 'unknown', detail: '' } : { cause: 'exit', detail: `exit status ${code}` };
}

/** `SIGKILL` of `KILL`, `SIGKILL` or `9`. */
export function signalName(signal: string): string {
  const number = Number(signal);
  if (Number.isInteger(number)) return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${signal}`;
  return signal.startsWith('SIG') ? signal : `SIG${signal}`;
}

/** What systemd calls the result of a unit (systemd.exec(5), $SERVICE_RESULT). Others are named in the detail. */
const RESULTS: Readonly<Record<string, Cause>> = {
  watchdog: 'watchdog',
  signal: 'signal',
  'core-dump': 'core-dump',
  'oom-kill': 'oom-kill',
  'exit-code': 'exit',
  timeout: 'timeout',
};

export interface UnitEnd {
  /** `Result` or `UNIT_RESULT`; null: not told. */
  readonly result: string | null;
  /** How the main process ended: `exited` with a status, `killed` or `dumped` by a signal; null: not told. */
  readonly code: string | null;
  readonly status: string | null;
  /** Somebody asked systemd to stop it. */
  readonly asked: boolean;
  /** The kernel killed a process of it for want of memory. */
  readonly outOfMemory: boolean;
}

/** Why a run of a unit ended. */
export function endOfUnit({ asked, code, outOfMemory, result, status }: UnitEnd): RunEnd {
  const detail = detailOf(code, status);
  const failure = result === null || result === 'success' ? null : result;
  // With OOMPolicy=continue systemd calls it a signal.
  if (outOfMemory && detail === 'SIGKILL' && !asked) return { cause: 'oom-kill', detail };
  if (failure !== null) {
    const cause = RESULTS[failure];
    return cause === undefined ? { cause: 'unknown', detail: joined(`result "${failure}"`, detail) } : { cause, detail };
  }
  if (asked) return { cause: 'stopped', detail: '' };
  if (code === 'exited') return { cause: 'exit', detail };
  if (code === 'killed' || code === 'dumped') return { cause: code === 'dumped' ? 'core-dump' : 'signal', detail };
  return result === 'success' ? { cause: 'exit', detail: 'it ended by itself, without an error' } : { cause: 'unknown', detail };
}

function detailOf(code: string | null, status: string | null): string {
  if (code === null || status === null) return '';
  return code === 'exited' ? `exit status ${status}` : signalName(status);
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(', ');
}

/**
 * How many runs nobody saw between one with `before` automatic restarts and one with `now`. The count begins at 0 again when somebody
 * starts the unit: then it tells those since, and the least there can have been.
 */
export function unseenRuns(before: number | null, now: number | null): number {
  if (now === null || now === 0) return 0;
  if (before === null) return 0;
  return now > before ? now - before - 1 : now;
}
