import { printable } from '../text.ts';
import type { ShutdownReason } from './shutdown.ts';
import { ON_FAILURE } from './shutdown-sequence.ts';

/** An inhibitor lock of systemd-logind (systemd-inhibit). */
export interface Inhibitor {
  /** What it inhibits, such as `shutdown` and `sleep`. */
  readonly what: readonly string[];
  readonly who: string;
  readonly why: string;
  /** `block` and, since systemd 257, `block-weak` forbid; `delay` grants some seconds, which logind handles itself. */
  readonly mode: string;
  readonly user: string;
  readonly pid: number;
}

const NAMED = 2;
const MAX_WHO = 60;
const MAX_WHY = 120;

/** Whether locks are overridden for a reason: a machine in danger shuts down regardless of locks. */
export function overridesLocks(reason: ShutdownReason): boolean {
  return ON_FAILURE[reason] === 'skip';
}

/** Which locks inhibit a shutdown now, and what to do about it; null: none. */
export function inhibition(inhibitors: readonly Inhibitor[]): string | null {
  const blocking = inhibitors.filter(({ mode, what }) => mode.startsWith('block') && what.includes('shutdown'));
  if (blocking.length === 0) return null;
  const named = blocking.slice(0, NAMED).map(({ pid, user, who, why }) => {
    const reason = why.trim() === '' ? 'no reason given' : printable(why, MAX_WHY);
    return `${printable(who, MAX_WHO)} (pid ${pid}, user ${user}): ${reason}`;
  });
  const more = blocking.length > NAMED ? ` and ${blocking.length - NAMED} more` : '';
  return `inhibited by ${named.join(' and by ')}${more}; try again later, or use the reason EMERGENCY`;
}
