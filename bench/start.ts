/** From exec to the first health status, against node_exporter's first answer. */
import { endProcess } from '../testkit/cleanup.ts';
import { startService } from './support/ours.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { startNodeExporter } from './support/rivals.ts';
import { median, worst } from './support/statistics.ts';

const STARTS = 10;
const ASK_EVERY_SECONDS = 0.002;

await benchmark('start', async ({ cleanup, progress }): Promise<Outcome> => {
  const ours: number[] = [];
  const rival: number[] = [];
  for (let n = 1; n <= STARTS; n += 1) {
    progress(`start ${n} of ${STARTS}`);
    const service = await startService(cleanup, { askEverySeconds: ASK_EVERY_SECONDS });
    ours.push(service.startSeconds);
    await endProcess(service.child);
    const exporter = await startNodeExporter(cleanup, [], ASK_EVERY_SECONDS);
    if (!exporter) continue;
    rival.push(exporter.startSeconds);
    await endProcess(exporter.child);
  }
  const beside = (value: (of: number[]) => number) => (rival.length > 0 ? { rival: { name: 'node_exporter', value: value(rival) } } : {});
  return {
    rows: [
      { figure: `start to the first health status, median of ${STARTS}`, unit: 's', ours: median(ours), ...beside(median), atMost: 0.6 },
      { figure: `the same, worst of ${STARTS}`, unit: 's', ours: worst(ours), ...beside(worst) },
    ],
    notes: [
      `From starting \`bin/edge-health run\` with a fresh data folder to the end of the first 200 of /health, asked every ${ASK_EVERY_SECONDS * 1000} ms; the program files are in the page cache. A first CPU figure needs two readings, which lie 0.25 s apart.`,
      'node_exporter: to the first answer of /metrics, in turns with the service.',
    ],
  };
});
