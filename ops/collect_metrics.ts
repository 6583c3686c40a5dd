import { join } from 'node:path';
import { type RestClient, ServiceUnreachable } from '../src/client/rest.ts';
import type { Config } from '../src/config/schema.ts';
import { appendMetrics } from './collect/metrics-file.ts';
import { METRICS_FILE } from './collect/metrics-names.ts';
import { COLUMNS, type Collected, type CollectedStatus, HEADER, metricsRows } from './collect/metrics-rows.ts';
import { momentNow } from './collect/moment.ts';
import { nodeValues } from './collect/node-values.ts';
import { prune } from './collect/prune.ts';
import { diskProblem } from './lib/disk-problem.ts';
import type { Job, JobContext, JobResult } from './lib/job.ts';

/** Within this the service has answered, or the row says that it did not. */
const ANSWER_SECONDS = 10;

export const collectMetrics: Job = {
  name: 'collect_metrics',
  summary: 'Appends one CSV row a node to metrics/metrics_YYYY-MM-DD.csv (UTC)',
  usage: 'collect_metrics [--dry-run] [OPTIONS]',
  help: `A row is written also when the service does not answer: answered is false then, and reason says why.

  --dry-run       shows the rows and writes nothing
`,
  options: { 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (context, { options }) => {
    const collected = await collect(context);
    // What ended the run early says nothing about the service: a row would.
    if (context.signal.aborted) return ended(context.signal);
    const rows = metricsRows(collected, ownNode(context.config));
    return options['dry-run'] ? shown(collected, rows) : write(context, collected, rows);
  },
};

/** As the service names itself, unless its arguments say otherwise. */
function ownNode({ node_name, ros }: Config): string {
  const namespace = ros.namespace?.replace(/^\//, '') ?? '';
  return namespace === '' ? node_name : `${namespace}/${node_name}`;
}

async function collect({ config, nowMs, rest, signal }: JobContext): Promise<Collected> {
  const seconds = Math.min(ANSWER_SECONDS, config.ops.deadlines.collect_metrics * 0.8);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer within ${seconds} s`)), seconds * 1000);
  const within = AbortSignal.any([signal, limit.signal]);
  try {
    const status = await askStatus(rest, within);
    const moment = momentNow(nowMs);
    try {
      return { moment, status, values: nodeValues(await rest.text('/metrics', { signal: within })), reason: null };
    } catch (error) {
      return { moment, status, values: new Map(), reason: reasonOf(error, limit.signal) };
    }
  } catch (error) {
    return { moment: momentNow(nowMs), status: null, values: new Map(), reason: reasonOf(error, limit.signal) };
  } finally {
    clearTimeout(timer);
  }
}

async function askStatus(rest: RestClient, signal: AbortSignal): Promise<CollectedStatus> {
  const status = await rest.json<CollectedStatus>('/status', { signal });
  const isOurs = Array.isArray(status?.nodes) && [status.publish, status.open_alerts, status.storage, status.power].every(Boolean);
  if (!isOurs) throw new ServiceUnreachable(`${rest.base}/status is not that of edge-health`);
  return status;
}

function reasonOf(error: unknown, limit: AbortSignal): string {
  return ((limit.aborted ? limit.reason : error) as Error).message;
}

function shown({ reason, status }: Collected, rows: readonly string[]): JobResult {
  const lines = [HEADER, ...rows].map((row) => row.trimEnd());
  return {
    status: status === null ? 'WARNING' : 'OK',
    lines,
    document: { dry_run: true, answered: status !== null, reason, columns: COLUMNS, rows: lines.slice(1) },
  };
}

async function write(context: JobContext, { moment, reason, status }: Collected, rows: readonly string[]): Promise<JobResult> {
  const folder = join(context.dataFolder, 'metrics');
  try {
    const { cut, file, isNew } = await appendMetrics(folder, HEADER, rows.join(''), moment.ms);
    if (cut > 0) context.log('warning', 'cut off a torn last row, as a power cut leaves it', { file: join(folder, file), bytes: cut });
    const pruned = isNew ? await prune(context, folder, METRICS_FILE) : [];
    const document = { answered: status !== null, reason, file: join(folder, file), rows: rows.length, cut_bytes: cut, pruned };
    return { status: reason === null ? 'OK' : 'WARNING', lines: [lineOf(file, rows.length, status !== null, reason)], document };
  } catch (error) {
    const problem = diskProblem(error, folder);
    if (problem === null) throw error;
    return { status: 'CRITICAL', lines: [`CRITICAL  no row was written: ${problem}`], document: { error: problem } };
  }
}

function lineOf(file: string, rows: number, answered: boolean, reason: string | null): string {
  if (!answered) return `WARNING  the service does not answer (${reason}), as a row in ${file} says; see: systemctl status edge-health`;
  if (reason !== null) return `WARNING  ${file} has rows without values: ${reason}`;
  return `OK  ${rows === 1 ? '1 row' : `${rows} rows`} in ${file}`;
}

function ended({ reason }: AbortSignal): JobResult {
  const message = `ended before a row was written: ${(reason as Error).message}`;
  return { status: 'UNKNOWN', lines: [`UNKNOWN  ${message}`], document: { error: message } };
}
