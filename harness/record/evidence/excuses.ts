import { isoUtc } from '../../../src/core/time.ts';
import type { HoldingGap } from '../../engine/evidence.ts';
import type { ClockEvent } from './axis.ts';

/** A gap between two time stamps, in ms since the epoch. */
export interface StampRange {
  readonly from: number;
  readonly to: number;
  /** How far the clock was put back between them: by so much longer it was. */
  readonly backSeconds: number;
}

/** By the wall clock: from the last entry before to the first one after. */
export interface MachineOff {
  readonly from: number;
  readonly to: number;
}

/**
 * What a gap comes to once recorded suspends and forward clock steps are taken off. Such an event takes the stamps between the time
 * before it and the time after it away, wherever in its bounds it was: it explains a gap only if all of these can lie in it, since no
 * sample is taken meanwhile. A machine that was off explains nothing.
 */
export function explain({ from, to, backSeconds }: StampRange, events: readonly ClockEvent[], offs: readonly MachineOff[]): HoldingGap {
  let seconds = (to - from) / 1000 + backSeconds;
  const excused: string[] = [];
  for (const event of events) {
    if (event.seconds <= 0) continue;
    const within = Math.min(to, event.latest) - Math.max(from, event.earliest - event.seconds * 1000);
    if (within < event.seconds * 1000) continue;
    seconds -= event.seconds;
    const told = `${Math.round(event.seconds * 1000) / 1000} s`;
    excused.push(event.kind === 'suspend' ? `suspended for ${told}` : `the clock was put forward by ${told}`);
  }
  const remarks = offs.some((off) => off.from < to && off.to > from) ? ['the machine was off'] : [];
  if (backSeconds > 0) remarks.push(`the clock was put back by ${Math.round(backSeconds * 1000) / 1000} s`);
  return { from: isoUtc(from), to: isoUtc(to), seconds: Math.max(0, seconds), excused: excused.join(', '), remark: remarks.join(', ') };
}
