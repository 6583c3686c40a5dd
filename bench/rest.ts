/** /health at 1,000 requests a second, against node_exporter's smallest page. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import type { RateReport } from './clients/constant-rate.ts';
import { fetchJson } from './support/http.ts';
import { startService } from './support/ours.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { startNodeExporter } from './support/rivals.ts';
import { sysTree } from './support/sensor-tree.ts';

const RATE = 1000;
const SECONDS = 30;
const WARM_UP_SECONDS = 5;

interface Load extends RateReport {
  readonly cpuPercent: number;
}

async function requestsAt(url: string, seconds: number): Promise<RateReport> {
  const program = new URL('./clients/constant-rate.ts', import.meta.url).pathname;
  const argv = [...process.execArgv, program, url, String(RATE), String(seconds)];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: (seconds + 20) * 1000 });
  return JSON.parse(stdout) as RateReport;
}

async function load(url: string, pid: number): Promise<Load> {
  await requestsAt(url, WARM_UP_SECONDS);
  const meter = new ProcessMeter(pid);
  const before = meter.cpuSeconds();
  const report = await requestsAt(url, SECONDS);
  const cpuPercent = (100 * (meter.cpuSeconds() - before)) / SECONDS;
  if (report.failed > 0) throw new Error(`${report.failed} of ${report.sent} requests to ${url} failed`);
  return { ...report, cpuPercent };
}

await benchmark('rest', async ({ cleanup, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const service = await startService(cleanup, { sysRoot: sys.path });
  const missed = async (): Promise<number> => (await fetchJson<{ publish: { missed: number } }>(`${service.url}/status`)).publish.missed;
  const missedBefore = await missed();
  progress(`/health at ${RATE} requests a second, ${SECONDS} s`);
  const ours = await load(`${service.url}/health`, service.pid);
  const missedMeanwhile = (await missed()) - missedBefore;

  const exporter = await startNodeExporter(cleanup, []);
  if (exporter) progress(`node_exporter's / at ${RATE} requests a second, ${SECONDS} s`);
  const rival = exporter && (await load(`${exporter.url}/`, exporter.pid));
  const beside = (value: (report: Load) => number) => (rival ? { rival: { name: 'node_exporter, /', value: value(rival) } } : {});
  const clientMs = [ours, ...(rival ? [rival] : [])].map(({ late99 }) => late99.toFixed(2)).join(' and ');
  return {
    rows: [
      { figure: `/health at ${RATE} requests a second, 99 % within`, unit: 'ms', ours: ours.p99, ...beside((of) => of.p99), atMost: 5 },
      { figure: 'the same, half within', unit: 'ms', ours: ours.p50, ...beside((of) => of.p50) },
      { figure: 'the same, 99.9 % within', unit: 'ms', ours: ours.p999, ...beside((of) => of.p999) },
      { figure: 'the same, CPU of one core', unit: '%', ours: ours.cpuPercent, ...beside((of) => of.cpuPercent) },
      { figure: 'slots missed meanwhile', unit: '', ours: missedMeanwhile, atMost: 0 },
    ],
    notes: [
      `A client of its own holds the rate over 16 kept connections for ${SECONDS} s after ${WARM_UP_SECONDS} s of warm-up. Each request is measured from the moment at which it was due, so that a stalled server is charged for what it kept waiting. The client itself was at most ${clientMs} ms late (99th percentile), which is part of the figures.`,
      "node_exporter: its landing page /, a constant text and the smallest it has, in the same way right after. A health status is the service's current measurement.",
    ],
  };
});
