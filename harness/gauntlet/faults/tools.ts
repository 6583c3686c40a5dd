import { STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { longestSilenceSeconds } from '../account.ts';
import type { Arena } from '../arena.ts';
import type { StreamReader } from '../observer.ts';

export const DATABASE = `${STATE}/edge-health.db`;
export const TAIL = '/run/edge-health/tail';

/** The service's process and how often it was restarted, to be compared later. */
export interface Run {
  readonly pid: number;
  readonly restarts: number;
}

export async function runOf({ appliance }: Arena): Promise<Run> {
  return { pid: await appliance.mainPid(), restarts: await appliance.restarts() };
}

/** That the very process of before serves still. */
export async function mustGoOn(arena: Arena, before: Run): Promise<void> {
  const now = await runOf(arena);
  arena.must('the same process goes on, without a restart', now.pid === before.pid && now.restarts === before.restarts, now);
}

/** That systemd restarted the service so many times since, and it is active. */
export async function mustBeRestarted(arena: Arena, before: Run, times = 1): Promise<void> {
  const now = await runOf(arena);
  arena.must(`systemd restarted it ${times === 1 ? 'once' : `${times} times`}`, now.restarts === before.restarts + times, now);
  arena.must('the unit is active', (await arena.machine.show(UNIT, 'ActiveState')) === 'active');
}

/** A machine that has much else to do may hold it up for so long. */
const GAP_SECONDS = 3;

/** That statuses were published all the time from then to now, as the event stream brought them. */
export function mustPublishOn(arena: Arena, fromMs: number): void {
  const gap = longestSilenceSeconds(stampsOf(arena.stream.statuses), fromMs, Date.now());
  arena.must(`statuses are published without a gap of ${GAP_SECONDS} s`, gap < GAP_SECONDS, gap);
}

/** The same for the topic. */
export function mustPublishOnTopic(arena: Arena, fromMs: number): void {
  const gap = longestSilenceSeconds(stampsOf(arena.topic?.statuses ?? []), fromMs, Date.now());
  arena.must('on the topic as well', gap < GAP_SECONDS, gap);
}

function stampsOf(heard: StreamReader['statuses']): number[] {
  return heard.map(({ it }) => Date.parse(it.timestamp));
}

/** What the service and systemd said about the unit since then. */
export function saidSince({ machine }: Arena, sinceMs: number): Promise<string> {
  return machine.journal(UNIT, '--since', `@${(sinceMs / 1000).toFixed(3)}`);
}
