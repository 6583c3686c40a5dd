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
 * before it and the time after it away, wherever in its bounds it was: it explains a gap in which all of these can lie, since no sample
 * is taken meanwhile. Where older samples carry stamps among them, after a clock was put back, it explains what lies between its own
 * for certain. A machine that was off explains nothing.
 */
export function explain({ from, to, backSeconds }: StampRange, events: readonly ClockEvent[], offs: readonly MachineOff[]): HoldingGap {
  let seconds = (to - from) / 1000 + backSeconds;
  const excused: string[] = [];
  for (const event of events) {
    const taken = takenMs(event, from, to);
    if (taken <= 0) continue;
    seconds -= taken / 1000;
    const told = `${Math.round(event.seconds * 1000) / 1000} s`;
    excused.push(event.kind === 'suspend' ? `suspended for ${told}` : `the clock was put forward by ${told}`);
  }
  const remarks = offs.some((off) => off.from < to && off.to > from) ? ['the machine was off'] : [];
  if (backSeconds > 0) remarks.push(`the clock was put back by ${Math.round(backSeconds * 1000) / 1000} s`);
  return { from: isoUtc(from), to: isoUtc(to), seconds: Math.max(0, seconds), excused: excused.join(', '), remark: remarks.join(', ') };
}

/** How many of the stamps between two an event took away. */
function takenMs({ earliest, latest, seconds }: ClockEvent, from: number, to: number): number {
  // Of a clock that was put back: less than nothing, either way.
  const all = seconds * 1000;
  if (Math.min(to, latest) - Math.max(from, earliest - all) >= all) return all;
  return Math.min(to, earliest) - Math.max(from, latest - all);
}
