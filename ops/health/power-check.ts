import { readBootId } from '../../src/system/boot-id.ts';
import type { Check } from './check.ts';
import { finding, fine, type Verdict } from './verdict.ts';

export interface PowerFacts {
  /** Null: the kernel does not tell. */
  readonly undervoltage: boolean | null;
  readonly throttleEvents: number | null;
  /** Since the last check. */
  readonly grown: number;
}

export function judgePower({ grown, throttleEvents, undervoltage }: PowerFacts): Verdict | null {
  if (undervoltage === null && throttleEvents === null) return null;
  const measured = { undervoltage, throttle_events: throttleEvents, throttle_events_since_last_check: grown };
  if (undervoltage === true)
    return finding(
      'power',
      'CRITICAL',
      'the supply voltage is too low (below 4.63 V)',
      'a stronger power supply, a shorter cable, or fewer USB devices',
      measured,
    );
  if (grown > 0)
    return finding(
      'power',
      'WARNING',
      `the CPU was slowed for its heat ${grown} times since the last check`,
      'improve the cooling, or lower the load',
      measured,
    );
  return fine('power', undervoltage === null ? 'no throttling since the last check' : 'the supply voltage is right', measured);
}

export const powerCheck: Check = {
  name: 'power',
  seconds: 20,
  run: async ({ counters, root, service }) => {
    const answer = await service;
    if (answer.kind !== 'answer') return [];
    const { throttle_events: throttleEvents, undervoltage } = answer.status.power;
    const grown = throttleEvents === null ? 0 : counters.grown('throttle events', readBootId(`${root}/proc`) ?? '', throttleEvents);
    const verdict = judgePower({ undervoltage, throttleEvents, grown });
    return verdict === null ? [] : [verdict];
  },
};
