/** Cost of 1,000 samples per second, the highest rate that can be configured. */

import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import { fetchJson } from './support/http.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { startService } from './support/service-process.ts';
import { pause } from './support/statistics.ts';

const SECONDS = 60;
const WARM_UP_SECONDS = 10;

interface Publish {
  readonly publish: { readonly samples: number; readonly missed: number };
}

await benchmark('thousand', async ({ cleanup, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const service = await startService(cleanup, { sysRoot: sys.path, publishFrequency: 1000 });
  await pause(WARM_UP_SECONDS);
  const meter = new ProcessMeter(service.pid);
  progress(`1,000 samples per second, ${SECONDS} s`);
  const { publish: before } = await fetchJson<Publish>(`${service.url}/status`);
  const cpuBefore = meter.cpuSeconds();
  const begun = performance.now();
  await pause(SECONDS);
  const seconds = (performance.now() - begun) / 1000;
  const cpuPercent = (100 * (meter.cpuSeconds() - cpuBefore)) / seconds;
  const { residentMegabytes } = meter.memory();
  const { publish: after } = await fetchJson<Publish>(`${service.url}/status`);
  const missed = after.missed - before.missed;
  const intervals = missed + after.samples - before.samples;
  return {
    rows: [
      { figure: 'samples missed at 1,000 Hz', unit: '%', value: (100 * missed) / intervals },
      { figure: 'CPU at 1,000 Hz, of one core', unit: '%', value: cpuPercent },
      { figure: 'resident memory at 1,000 Hz', unit: 'MB', value: residentMegabytes },
    ],
    notes: [
      `For information: ${intervals} sampling intervals in ${SECONDS} s, of which ${missed} were missed; REST and storage on. ${sys.note}`,
    ],
  };
});
