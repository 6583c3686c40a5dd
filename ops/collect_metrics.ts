import { join } from 'node:path';
import { ServiceUnreachable } from '../src/client/rest.ts';
import type { Config } from '../src/config/schema.ts';
import { METRICS_FILE } from '../src/core/metrics-files.ts';
import { readBootId } from '../src/system/boot-id.ts';
import { systemClocks } from '../src/system/clocks.ts';
import { appendMetrics } from './collect/metrics-file.ts';
import { COLUMNS, type CollectedStatus, HEADER, metricsRows, type Observation } from './collect/metrics-rows.ts';
import { nodeValues } from './collect/node-values.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { prune } from './lib/files.ts';
import type { Job, JobContext } from './lib/job.ts';

/** Without a response for so long, the row has answered: false. */
const RESPONSE_SECONDS = 10;

const clocks = systemClocks();

export const collectMetrics: Job = {
  name: 'collect_metrics',
  summary: 'Appends one CSV row per node to metrics/metrics_YYYY-MM-DD.csv (UTC)',
  usage: 'collect_metrics [--dry-run] [OPTIONS]',
  help: `A row is written even without a response from the service: its column answered is false, and reason contains the error.

  --dry-run       shows the rows and writes nothing
`,
  options: { 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (context, { options }) => {
    const { config, dataFolder, log, signal } = context;
    const observation = await observe(context);
    if (signal.aborted) {
      // The row would blame the service for the end of the run.
      const error = `ended before a row was written: ${(signal.reason as Error).message}`;
      return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { error } };
    }
    const { reason, wallMs } = observation;
    const answered = observation.status !== null;
    const rows = metricsRows(observation, ownNode(config));

    if (options['dry-run'] === true) {
      const lines = [HEADER, ...rows].map((row) => row.trimEnd());
      const document = { dry_run: true, answered, reason, columns: COLUMNS, rows: lines.slice(1) };
      return { status: answered ? 'OK' : 'WARNING', lines, document };
    }

    const folder = join(dataFolder, 'metrics');
    try {
      const { cut, file, isNew } = await appendMetrics(folder, HEADER, rows.join(''), wallMs);
      if (cut > 0) log('warning', 'torn last row removed', { file: join(folder, file), bytes: cut });
      const pruned = isNew ? await prune(context, folder, METRICS_FILE) : [];
      const document = { answered, reason, file: join(folder, file), rows: rows.length, cut_bytes: cut, pruned };
      if (reason === null)
        return { status: 'OK', lines: [`OK  ${rows.length} ${rows.length === 1 ? 'row' : 'rows'} in ${file}`], document };
      const problem = answered ? 'no values' : 'no response from the service';
      const remedy = answered ? '' : '; see: systemctl status edge-health';
      return { status: 'WARNING', lines: [`WARNING  ${problem} (${reason}), noted in ${file}${remedy}`], document };
    } catch (error) {
      const problem = diskProblem(error, folder);
      if (problem === null) throw error;
      return { status: 'CRITICAL', lines: [`CRITICAL  no row was written: ${problem}`], document: { error: problem } };
    }
  },
};

/** The name of this machine's node: that of the service unless its arguments set another. */
function ownNode({ node_name, ros }: Config): string {
  const namespace = ros.namespace?.replace(/^\//, '') ?? '';
  return namespace === '' ? node_name : `${namespace}/${node_name}`;
}

/** Requests /status and /metrics, and reads the clocks between them. What fails becomes the reason in the row. */
async function observe({ config, nowMs, rest, signal: ended }: JobContext): Promise<Observation> {
  const seconds = Math.min(RESPONSE_SECONDS, config.ops.timeouts.collect_metrics * 0.8);
  const timeout = AbortSignal.timeout(seconds * 1000);
  const signal = AbortSignal.any([ended, timeout]);
  const reasonOf = (error: unknown): string => (timeout.aborted ? `no response within ${seconds} s` : (error as Error).message);
  let status: CollectedStatus | null = null;
  let values: Observation['values'] = new Map();
  let reason: string | null = null;
  try {
    const document = await rest.json<CollectedStatus>('/status', { signal });
    const isStatus =
      Array.isArray(document?.nodes) && [document.publish, document.open_alerts, document.storage, document.power].every(Boolean);
    if (!isStatus) throw new ServiceUnreachable(`${rest.base}/status is not that of edge-health`);
    status = document;
  } catch (error) {
    reason = reasonOf(error);
  }
  const hundredths = (value: number): number => Math.round(value * 100) / 100;
  const times = {
    wallMs: nowMs(),
    bootId: readBootId('/proc'),
    bootSeconds: clocks.bootSeconds(),
    monotonicSeconds: hundredths(clocks.monotonicSeconds()),
  };
  try {
    if (status !== null) values = nodeValues(await rest.text('/metrics', { signal }));
  } catch (error) {
    reason = reasonOf(error);
  }
  return { ...times, status, values, reason };
}
