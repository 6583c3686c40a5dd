import type { VNode } from 'preact';
import { timeOfDay } from '../format.ts';

/** A time in the viewer's zone; its tooltip is the time in UTC. */
export function Time({ ms, nowMs }: { ms: number; nowMs: number }): VNode {
  const utc = new Date(ms).toISOString();
  return (
    <time dateTime={utc} title={utc}>
      {timeOfDay(ms, nowMs)}
    </time>
  );
}
