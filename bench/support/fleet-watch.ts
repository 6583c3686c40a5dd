import type { StatusDocument } from '../../src/http/api/schema.ts';
import { ProcessMeter } from '../../testkit/machine/process-meter.ts';
import type { FleetAppliance, Wire } from './fleet-appliance.ts';
import { pause } from './statistics.ts';

/** Octets and packets a second. */
export type Traffic = Wire;

const POLL_SECONDS = 0.2;
export const WAIT_SECONDS = 90;
export const DAY_SECONDS = 86_400;

/** Polls until it is so; the seconds from `begun` (of performance.now()), NaN when that takes too long. */
export async function until(begun: number, satisfied: () => Promise<boolean>): Promise<number> {
  while (!(await satisfied())) {
    if (performance.now() - begun > WAIT_SECONDS * 1000) return Number.NaN;
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

export function heard({ nodes }: StatusDocument): number {
  return nodes.filter(({ local, timestamp }) => !local && timestamp !== null).length;
}

/** CPU and traffic of the appliance while time passes; `look` every second. */
export async function watch(
  appliance: FleetAppliance,
  seconds: number,
  look: (meter: ProcessMeter, second: number) => Promise<void> | void,
) {
  const meter = new ProcessMeter(appliance.pid);
  const wire = appliance.wire();
  const cpu = meter.cpuSeconds();
  const written = meter.writtenBytes();
  const begun = performance.now();
  for (let second = 1; second <= seconds; second += 1) {
    await pause(Math.max(0, second - (performance.now() - begun) / 1000));
    await look(meter, second);
  }
  const took = (performance.now() - begun) / 1000;
  return {
    cpuPercent: (100 * (meter.cpuSeconds() - cpu)) / took,
    writtenMegabytesADay: ((meter.writtenBytes() - written) / 1e6 / took) * DAY_SECONDS,
    traffic: perSecond(wire, appliance.wire(), took),
    seconds: took,
  };
}
