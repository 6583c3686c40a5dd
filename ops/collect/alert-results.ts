/** The wording of collect_alerts. */
import { ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { diskProblem } from '../lib/files.ts';
import type { JobContext, JobResult, JobStatus } from '../lib/job.ts';
import type { AlertRecord } from './alert-files.ts';

/** What a run has done, even if an error ended it. */
export interface Progress {
  readonly records: AlertRecord[];
  /** Changes skipped because they are already in the files. */
  known: number;
  /** Whether the service's database was replaced and was read from its beginning. */
  replayed: boolean;
  /** Open episodes after the collected changes. */
  open: number;
}

/** The result of a run that collected everything. A dry run shows the lines that it did not write. */
export function collectedResult({ known, open, records, replayed }: Progress, dryRun: boolean): JobResult {
  if (dryRun) {
    const lines = records.map((record) => JSON.stringify(record));
    return { status: 'OK', lines, document: { dry_run: true, known, replayed, open, records } };
  }
  const count = `${records.length} ${records.length === 1 ? 'change' : 'changes'} collected, ${open} ${open === 1 ? 'episode' : 'episodes'} open`;
  const replay = replayed ? `; the database was replaced: collected from its beginning, ${known} changes were already in the files` : '';
  return { status: 'OK', lines: [`OK  ${count}${replay}`], document: { collected: records.length, known, replayed, open, error: null } };
}

/** The result of a run that ended with an error. Rethrows an error that does not come from the service, the disk or the signal. */
export function failedResult(error: unknown, { signal }: JobContext, folder: string, collected: number): JobResult {
  const result = (status: JobStatus, problem: string, remedy = ''): JobResult => {
    const before = collected > 0 ? ` (${collected} collected before)` : '';
    const text = [problem, `nothing is lost; the next run continues from here${before}`, remedy].filter(Boolean).join('; ');
    return { status, lines: [`${status}  ${text}`], document: { collected, error: text } };
  };
  if (signal.aborted) return result('WARNING', `stopped before all changes were collected: ${(signal.reason as Error).message}`);
  if (error instanceof ServiceUnreachable) {
    return result('WARNING', `no response from the service (${error.message})`, 'see: systemctl status edge-health');
  }
  if (error instanceof ServiceRefused) {
    const { message, status } = error;
    if (status === 503) return result('WARNING', message);
    const isToken = status === 401 || status === 403;
    const remedy = isToken ? 'check rest.token_file in the configuration' : 'see: journalctl -u edge-health';
    return result('CRITICAL', `the service refused the request: ${message}`, remedy);
  }
  const problem = diskProblem(error, folder);
  if (problem === null) throw error;
  return result('CRITICAL', `alerts not collected: ${problem}`);
}
