/** /health at 1,000 requests per second, against node_exporter's smallest page. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import type { RateReport } from './clients/constant-rate.ts';
import { startNodeExporter } from './support/baselines.ts';
import { fetchJson } from './support/http.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { startService } from './support/service-process.ts';

const RATE = 1000;
const SECONDS = 30;
const WARM_UP_SECONDS = 5;

interface Load extends RateReport {
  readonly cpuPercent: number;
}

async function sendRequests(url: string, seconds: number): Promise<RateReport> {
  const program = new URL('./clients/constant-rate.ts', import.meta.url).pathname;
  const argv = [...process.execArgv, program, url, String(RATE), String(seconds)];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: (seconds + 20) * 1000 });
  return JSON.parse(stdout) as RateReport;
}

async function measureLoad(url: string, pid: number): Promise<Load> {
  await sendRequests(url, WARM_UP_SECONDS);
  const meter = new ProcessMeter(pid);
  const before = meter.cpuSeconds();
  const report = await sendRequests(url, SECONDS);
  const cpuPercent = (100 * (meter.cpuSeconds() - before)) / SECONDS;
  if (report.failed > 0) throw new Error(`${report.failed} of ${report.sent} requests to ${url} failed`);
  return { ...report, cpuPercent };
}

await benchmark('rest', async ({ cleanup, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const service = await startService(cleanup, { sysRoot: sys.path });
  const missed = async (): Promise<number> => (await fetchJson<{ publish: { missed: number } }>(`${service.url}/status`)).publish.missed;
  const missedBefore = await missed();
  progress(`/health at ${RATE} requests per second, ${SECONDS} s`);
  const edgeHealth = await measureLoad(`${service.url}/health`, service.pid);
  const missedSamples = (await missed()) - missedBefore;

  const exporter = await startNodeExporter(cleanup, []);
  if (exporter) progress(`node_exporter's / at ${RATE} requests per second, ${SECONDS} s`);
  const baseline = exporter && (await measureLoad(`${exporter.url}/`, exporter.pid));
  const withBaseline = (value: (report: Load) => number) =>
    baseline ? { baseline: { name: 'node_exporter, /', value: value(baseline) } } : {};
  const clientMs = [edgeHealth, ...(baseline ? [baseline] : [])].map(({ late99 }) => late99.toFixed(2)).join(' and ');
  return {
    rows: [
      {
        figure: `/health at ${RATE} requests per second, p99`,
        unit: 'ms',
        value: edgeHealth.p99,
        ...withBaseline((of) => of.p99),
        atMost: 5,
      },
      { figure: 'the same, p50', unit: 'ms', value: edgeHealth.p50, ...withBaseline((of) => of.p50) },
      { figure: 'the same, p99.9', unit: 'ms', value: edgeHealth.p999, ...withBaseline((of) => of.p999) },
      { figure: 'the same, CPU of one core', unit: '%', value: edgeHealth.cpuPercent, ...withBaseline((of) => of.cpuPercent) },
      { figure: 'samples missed under this load', unit: '', value: missedSamples, atMost: 0 },
    ],
    notes: [
      `A separate client process holds the rate over 16 keep-alive connections for ${SECONDS} s after ${WARM_UP_SECONDS} s of warm-up. The latency of each request counts from its scheduled time, so that a stall of the server counts for every request that it delayed. The client itself was at most ${clientMs} ms late (99th percentile), which is included in the figures.`,
      "node_exporter: its landing page /, a constant text and its smallest page, measured in the same way right afterwards. A health status is the service's current measurement.",
    ],
  };
});
