import { basename } from 'node:path';
import { Damaged } from '../backup/read-archive.ts';
import { diskProblem } from '../lib/files.ts';
import type { JobContext, JobResult, JobStatus } from '../lib/job.ts';
import { type Action, type FileAction, Refused, RolledBack } from './restore-files.ts';
import type { Plan } from './restore-plan.ts';
import type { Previous } from './swap-database.ts';

export interface Restored {
  /** Null if the backup has no database. */
  readonly previous: Previous | null;
  /** The folder of the previous configuration files, or null if none were replaced. */
  readonly previousConfig: string | null;
  readonly files: readonly FileAction[];
  /** Samples that the service has after the restore; null if it was not running before, and was therefore not queried. */
  readonly samplesFound: number | null;
}

export function resultOf(status: JobStatus, texts: readonly string[], document: object): JobResult {
  const lines = texts.map((text, index) => (index === 0 ? `${status.padEnd(8)}  ${text}` : `          ${text}`));
  return { status, lines, document: { status, text: texts, ...document } };
}

/** `newerSamples` were recorded since the backup; null if unknown. */
export function previewOf(plan: Plan, units: readonly string[], newerSamples: number | null): JobResult {
  const { checked, files, warnings } = plan;
  const { database, host, made, product_version } = checked.manifest;
  const newer = newerSamples === null ? 'the number of newer samples is known once the service answers' : `${newerSamples} newer samples`;
  const texts = [
    `restore: ${basename(plan.archive)} is intact: made ${made} by version ${product_version} on ${host}, ${checked.manifest.files.length} files`,
    ...warnings.map((warning) => `warning: ${warning}`),
    ...describeDatabase(plan),
    ...(database ? [`the current database (${newer}) would be kept as edge-health.db.previous-<time>`] : []),
    ...describeFiles(files),
    ...describeConfig(plan, false),
    units.length > 0 ? `${units.join(' and ')} would be stopped and started again` : 'no systemd unit would be stopped',
    'nothing was changed; add --yes to restore it',
  ];
  return resultOf(warnings.length > 0 ? 'WARNING' : 'OK', texts, {
    done: false,
    archive: plan.archive,
    manifest: checked.manifest,
    newer_samples: newerSamples,
    files,
    units,
    warnings,
  });
}

export function reportOf(plan: Plan, units: readonly string[], { files, previous, previousConfig, samplesFound }: Restored): JobResult {
  const started =
    units.length > 0
      ? `${units.join(' and ')} run again${samplesFound === null ? '' : `, with storage ok and ${samplesFound} samples found`}`
      : 'start the service as usual: npm start, or systemctl start edge-health edge-health-ops';
  const texts = [
    `restore: ${basename(plan.archive)} is restored`,
    ...describeDatabase(plan),
    ...(previous?.database ? [`the previous database is kept as ${previous.database}; remove it when you are sure`] : []),
    ...(previous?.spool ? [`its last samples, which had not reached it, are kept in ${previous.spool}`] : []),
    ...describeFiles(files),
    ...describeConfig(plan, true),
    ...(previousConfig ? [`the previous configuration is kept in ${previousConfig}`] : []),
    started,
  ];
  return resultOf('OK', texts, {
    done: true,
    archive: plan.archive,
    manifest: plan.checked.manifest,
    previous_database: previous?.database ?? null,
    previous_spool: previous?.spool ?? null,
    previous_config: previousConfig,
    files,
    units,
    samples_found: samplesFound,
  });
}

function describeDatabase({ checked }: Plan): string[] {
  const { database } = checked.manifest;
  if (!database) return [];
  const { episodes, nodes, samples } = database;
  const times = nodes.flatMap(({ first, last }) => (first !== null && last !== null ? [first, last] : [])).sort();
  const range = times.length > 0 ? ` from ${times[0]} to ${times.at(-1)}` : '';
  return [`database: ${samples} samples of ${nodes.length} node${nodes.length === 1 ? '' : 's'}${range}, ${episodes} alert episodes`];
}

const ACTIONS: Readonly<Record<Action, string>> = {
  added: 'added',
  same: 'unchanged',
  kept: 'kept as they are, as they differ (--overwrite replaces them)',
  replaced: 'replaced, the previous ones kept as FILE.previous-<time>',
};

function describeFiles(files: readonly FileAction[]): string[] {
  return (Object.keys(ACTIONS) as Action[]).flatMap((action) => {
    const paths = files.filter((file) => file.action === action).map(({ path }) => path);
    const shown = paths.length > 6 ? `${paths.slice(0, 6).join(', ')} and ${paths.length - 6} more` : paths.join(', ');
    return paths.length === 0 ? [] : [`${paths.length} file${paths.length === 1 ? '' : 's'} ${ACTIONS[action]}: ${shown}`];
  });
}

function describeConfig({ checked, config }: Plan, isDone: boolean): string[] {
  if (!checked.manifest.files.some(({ path }) => path.startsWith('config/'))) return [];
  if (config === null) return ['the configuration stays as it is (--config-too restores that of the backup)'];
  if (config.diff === '') return ['the configuration is unchanged'];
  return isDone ? [] : ['the configuration would change:', ...config.diff.trimEnd().split('\n')];
}

/** A refusal changed nothing. Neither did a run that a signal ended, because signals take effect only before the first change. */
export function failureOf(error: Error, { dataFolder, signal }: JobContext): JobResult {
  let problem = diskProblem(error, dataFolder);
  if (error instanceof Refused || error instanceof Damaged || error instanceof RolledBack) problem = error.message;
  else if (signal.aborted) problem = `${(signal.reason as Error).message} before anything was changed`;
  if (problem === null) throw error;
  return resultOf('CRITICAL', [`restore: not done: ${problem}`], { done: false, error: problem });
}
