import type { StatusDocument } from '../../src/http/api/schema.ts';
import { ProcessMeter } from '../../testkit/machine/process-meter.ts';
import { pause } from '../support/statistics.ts';
import type { FleetAppliance, Wire } from './fleet-appliance.ts';

/** Bytes and packets per second. */
export type Traffic = Wire;

const POLL_SECONDS = 0.2;
export const TIMEOUT_SECONDS = 90;
export const DAY_SECONDS = 86_400;

/** Polls until the condition holds; returns the seconds since `begun` (of performance.now()), NaN after a timeout. */
export async function until(begun: number, satisfied: () => Promise<boolean>): Promise<number> {
  while (!(await satisfied())) {
    if (performance.now() - begun > TIMEOUT_SECONDS * 1000) return Number.NaN;
    await pause(POLL_SECONDS);
  }
  return (performance.now() - begun) / 1000;
}

function perSecond(before: Wire, after: Wire, seconds: number): Traffic {
  const rate = (key: keyof Wire): number => (after[key] - before[key]) / seconds;
  return {
    receivedBytes: rate('receivedBytes'),
    receivedPackets: rate('receivedPackets'),
    sentBytes: rate('sentBytes'),
    sentPackets: rate('sentPackets'),
  };
}

export function countReceivedNodes({ nodes }: StatusDocument): number {
  return nodes.filter(({ local, timestamp }) => !local && timestamp !== null).length;
}

/** Measures CPU and traffic of the appliance; calls `poll` every second. */
export async function measureAppliance(
  appliance: FleetAppliance,
  seconds: number,
  poll: (meter: ProcessMeter, second: number) => Promise<void> | void,
) {
  const meter = new ProcessMeter(appliance.pid);
  const wire = appliance.wire();
  const cpu = meter.cpuSeconds();
  const written = meter.writtenBytes();
  const begun = performance.now();
  for (let second = 1; second <= seconds; second += 1) {
    await pause(Math.max(0, second - (performance.now() - begun) / 1000));
    await poll(meter, second);
  }
  const took = (performance.now() - begun) / 1000;
  return {
    cpuPercent: (100 * (meter.cpuSeconds() - cpu)) / took,
    writtenMegabytesPerDay: ((meter.writtenBytes() - written) / 1e6 / took) * DAY_SECONDS,
    traffic: perSecond(wire, appliance.wire(), took),
    seconds: took,
  };
}
