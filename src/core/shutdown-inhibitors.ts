import type { ShutdownReason } from './shutdown.ts';
import { ON_FAILURE } from './shutdown-sequence.ts';
import { printable } from './text.ts';

/** A lock that somebody took at systemd-logind (systemd-inhibit). */
export interface Inhibitor {
  /** What it holds up, such as `shutdown` and `sleep`. */
  readonly what: readonly string[];
  readonly who: string;
  readonly why: string;
  /** `block` and, from systemd 257 on, `block-weak` forbid; `delay` asks for some seconds, which logind grants by itself. */
  readonly mode: string;
  readonly user: string;
  readonly pid: number;
}

const NAMED = 2;
const MAX_WHO = 60;
const MAX_WHY = 120;

/** Whether locks are overridden for a reason: a machine in danger goes down whoever wants it to stay up. */
export function overridesLocks(reason: ShutdownReason): boolean {
  return ON_FAILURE[reason] === 'skip';
}

/** Who forbids this machine to go down just now, and what to do about it; null: nobody does. */
export function inhibition(inhibitors: readonly Inhibitor[]): string | null {
  const blocking = inhibitors.filter(({ mode, what }) => mode.startsWith('block') && what.includes('shutdown'));
  if (blocking.length === 0) return null;
  const named = blocking.slice(0, NAMED).map(({ pid, user, who, why }) => {
    const reason = why.trim() === '' ? 'no reason given' : printable(why, MAX_WHY);
    return `${printable(who, MAX_WHO)} (pid ${pid}, user ${user}): ${reason}`;
  });
  const more = blocking.length > NAMED ? ` and ${blocking.length - NAMED} more` : '';
  return `inhibited by ${named.join(' and by ')}${more}; try again when that is done, or ask with EMERGENCY`;
}
