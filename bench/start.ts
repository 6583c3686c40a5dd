/** Time from exec to the first health status, compared with node_exporter's first response. */
import { endProcess } from '../testkit/cleanup.ts';
import { startNodeExporter } from './support/baselines.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { startService } from './support/service-process.ts';
import { median, worst } from './support/statistics.ts';

const STARTS = 10;
const START_POLL_SECONDS = 0.002;

await benchmark('start', async ({ cleanup, progress }): Promise<Outcome> => {
  const edgeHealth: number[] = [];
  const baseline: number[] = [];
  for (let n = 1; n <= STARTS; n += 1) {
    progress(`start ${n} of ${STARTS}`);
    const service = await startService(cleanup, { pollSeconds: START_POLL_SECONDS });
    edgeHealth.push(service.startSeconds);
    await endProcess(service.child);
    const exporter = await startNodeExporter(cleanup, [], START_POLL_SECONDS);
    if (!exporter) continue;
    baseline.push(exporter.startSeconds);
    await endProcess(exporter.child);
  }
  const withBaseline = (value: (of: number[]) => number) =>
    baseline.length > 0 ? { baseline: { name: 'node_exporter', value: value(baseline) } } : {};
  return {
    rows: [
      {
        figure: `start to the first health status, median of ${STARTS}`,
        unit: 's',
        value: median(edgeHealth),
        ...withBaseline(median),
        atMost: 0.6,
      },
      { figure: `the same, worst of ${STARTS}`, unit: 's', value: worst(edgeHealth), ...withBaseline(worst) },
    ],
    notes: [
      `From starting \`bin/edge-health run\` with a fresh data folder to the end of the first 200 response of /health, requested every ${START_POLL_SECONDS * 1000} ms; the program files are in the page cache. The first CPU figure needs two readings, 0.25 s apart.`,
      'node_exporter: to the first response of /metrics, alternating with the service.',
    ],
  };
});
