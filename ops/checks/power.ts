import { readBootId } from '../../src/core/platform/boot-id.ts';
import { type Check, type CheckResult, resultsFor } from './check.ts';

export interface PowerFacts {
  /** Null if the kernel does not report it. */
  readonly undervoltage: boolean | null;
  readonly throttleEvents: number | null;
  /** Throttle events since the previous run. */
  readonly throttled: number;
}

export function evaluatePower({ throttled, throttleEvents, undervoltage }: PowerFacts): CheckResult | null {
  if (undervoltage === null && throttleEvents === null) return null;
  const measured = { undervoltage, throttle_events: throttleEvents, throttle_events_since_last_check: throttled };
  const { critical, ok, warning } = resultsFor('power', measured);
  if (undervoltage === true)
    return critical('the supply voltage is too low (below 4.63 V)', 'use a stronger power supply, a shorter cable, or fewer USB devices');
  if (throttled > 0)
    return warning(
      `the CPU was throttled by its temperature ${throttled} times since the last check`,
      'improve the cooling, or lower the load',
    );
  return ok(undervoltage === null ? 'no throttling since the last check' : 'the supply voltage is OK');
}

export const checkPower: Check = async ({ counters, service }) => {
  const answer = await service;
  if (answer.kind !== 'answer') return [];
  const { throttle_events: throttleEvents, undervoltage } = answer.status.power;
  const throttled = throttleEvents === null ? 0 : counters.increase('throttle events', readBootId('/proc') ?? '', throttleEvents);
  const result = evaluatePower({ undervoltage, throttleEvents, throttled });
  return result === null ? [] : [result];
};
