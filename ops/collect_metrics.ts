import { join } from 'node:path';
import type { Config } from '../src/config/schema.ts';
import { METRICS_FILE } from '../src/core/metrics-files.ts';
import { appendMetrics, COLUMNS, HEADER, metricsRows } from './collect/metrics-rows.ts';
import { observe } from './collect/observation.ts';
import { diskProblem, prune } from './lib/files.ts';
import type { Job } from './lib/job.ts';

export const collectMetrics: Job = {
  name: 'collect_metrics',
  summary: 'Append one CSV row per node to metrics/metrics_YYYY-MM-DD.csv (UTC)',
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
      // Otherwise the row would blame the service for the end of the run.
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
