/** Numbered health statuses: the numbers that a peer received, their order, and the missing ones. */
import type { Peer, PeerEvent } from './peers.ts';

export type Arrival = PeerEvent<'sample'>;

export const numberOf = ({ data }: Arrival): number => Number(data['cpu_percent']);

/** The health statuses that a peer received, in order of arrival. */
export function arrivalsAt(peer: Peer): Arrival[] {
  return peer.all('sample').filter(({ topic }) => topic.endsWith('/health_status'));
}

/** The numbers from `from` to `to`, inclusive. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
}

/** The numbers from..to that are not in `found`. */
export function missing(found: readonly number[], from: number, to: number): number[] {
  const known = new Set(found);
  return range(from, to).filter((number) => !known.has(number));
}

/** Waits until a peer has received a status with this number or a later one. */
export function reached(peer: Peer, number: number, seconds: number): Promise<Arrival> {
  return peer.waitFor('sample', (sample) => sample.topic.endsWith('/health_status') && numberOf(sample) >= number, seconds);
}

/** A number and the wall-clock milliseconds of its publishing or arrival. */
export interface Counted {
  readonly number: number;
  readonly ms: number;
}

/** Losses after a disturbance. */
export interface Outage {
  /** Numbers that never arrived, in ascending order. */
  readonly gone: readonly number[];
  /** Time from the disturbance to the first arrival after the last lost number; 0 if nothing was lost. */
  readonly backSeconds: number;
  /** Whether all lost numbers are ones that KEEP_LAST 10 had dropped, and none is from before the disturbance. */
  readonly isWithinPromise: boolean;
}

const DEPTH = 10;
/** Tolerance between events in one process and their record in another. */
const TOLERANCE_MS = 300;

/** Evaluates a stream up to `last` that was disturbed at `disturbedMs` (wall clock). */
export function outageOf(published: readonly Counted[], arrived: readonly Counted[], disturbedMs: number, last: number): Outage {
  const until = (ms: number): number => published.findLast((entry) => entry.ms <= ms)?.number ?? 0;
  const numbers = arrived.map(({ number }) => number);
  const gone = missing(numbers, Math.min(...numbers), last);
  const [first, final] = [gone[0], gone.at(-1)];
  if (first === undefined || final === undefined) return { gone, backSeconds: 0, isWithinPromise: true };
  const backMs = arrived.find(({ number }) => number > final)?.ms ?? Number.POSITIVE_INFINITY;
  const isWithinPromise = first > until(disturbedMs - TOLERANCE_MS) && final <= until(backMs + TOLERANCE_MS) - DEPTH;
  return { gone, backSeconds: (backMs - disturbedMs) / 1000, isWithinPromise };
}

/** Formats p50, p99 and maximum. */
export function spread(milliseconds: readonly number[]): string {
  const sorted = [...milliseconds].sort((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}
