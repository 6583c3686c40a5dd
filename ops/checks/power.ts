import { readBootId } from '../../src/core/platform/boot-id.ts';
import { type Check, type CheckResult, resultsFor } from './check.ts';

export interface PowerFacts {
  /** Times that the supply voltage was too low since the service started. */
  readonly undervoltageEvents: number | null;
  /** Null if the kernel does not report it. */
  readonly undervoltage: boolean | null;
  /** Times that the supply voltage was too low since the previous run. */
  readonly undervoltages: number;
  readonly throttleEvents: number | null;
  /** Throttle events since the previous run. */
  readonly throttled: number;
}

export function evaluatePower({
  throttled,
  throttleEvents,
  undervoltage,
  undervoltageEvents,
  undervoltages,
}: PowerFacts): CheckResult | null {
  if (undervoltage === null && throttleEvents === null) return null;
  const measured = {
    undervoltage,
    undervoltages_since_last_check: undervoltages,
    throttle_events: throttleEvents,
    throttle_events_since_last_check: throttled,
  };
  const { critical, ok, warning } = resultsFor('power', measured);
  const remedy = 'use a stronger power supply, a shorter cable, or fewer USB devices';
  if (undervoltage === true) return critical('the supply voltage is too low (below 4.63 V)', remedy);
  if (undervoltages > 0) return warning(`the supply voltage fell below 4.63 V ${undervoltages} times since the last check`, remedy);
  if (throttled > 0)
    return warning(
      `the CPU was throttled by its temperature ${throttled} times since the last check`,
      'improve the cooling, or lower the load',
    );
  if (undervoltageEvents) return ok(`the supply voltage is OK; it was too low ${undervoltageEvents} times since the service started`);
  return ok(undervoltage === null ? 'no throttling since the last check' : 'the supply voltage is OK');
}

export const checkPower: Check = async ({ counters, service }) => {
  const answer = await service;
  if (answer.kind !== 'answer') return [];
  const { power, started } = answer.status;
  const { throttle_events: throttleEvents, undervoltage, undervoltage_events: undervoltageEvents } = power;
  const throttled = throttleEvents === null ? 0 : counters.increase('throttle events', readBootId('/proc') ?? '', throttleEvents);
  const undervoltages = undervoltageEvents === null ? 0 : counters.increase('undervoltage events', started, undervoltageEvents);
  const result = evaluatePower({ undervoltage, undervoltageEvents, undervoltages, throttleEvents, throttled });
  return result === null ? [] : [result];
};
