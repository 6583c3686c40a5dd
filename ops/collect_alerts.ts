import { join } from 'node:path';
import { ServiceRefused, ServiceUnreachable } from '../src/client/rest.ts';
import { AlertCollection, type Tally } from './collect/alert-collection.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { type Job, type JobContext, type JobResult, type JobStatus, UsageError } from './lib/job.ts';

export const collectAlerts: Job = {
  name: 'collect_alerts',
  summary: 'Appends the changes of alerts since its last run to alerts/alerts_YYYY-MM-DD.ndjson (UTC)',
  usage: 'collect_alerts [--since TIME] [--dry-run] [OPTIONS]',
  help: `Each change is written once, also when the service, this program or the power failed meanwhile. The first
run takes all that the database has.

  --since TIME    leaves out what changed before TIME (2026-01-31 or 2026-01-31T12:00:00Z), for good
  --dry-run       shows the lines and writes nothing
`,
  options: { since: { type: 'string' }, 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (context, { options }) => {
    const since = options['since'] as string | undefined;
    const sinceMs = since === undefined ? null : Date.parse(since);
    if (Number.isNaN(sinceMs)) throw new UsageError(`--since is "${since}"; allowed: a time such as 2026-01-31 or 2026-01-31T12:00:00Z`);
    const dryRun = options['dry-run'] === true;
    const folder = join(context.dataFolder, 'alerts');
    try {
      const collection = await AlertCollection.open(context, { folder, sinceMs, dryRun });
      try {
        await collection.run();
      } catch (error) {
        return await problemOf(error, context, folder, collection.tally);
      }
      return dryRun ? shown(collection) : done(collection);
    } catch (error) {
      return await problemOf(error, context, folder, null);
    }
  },
};

function done({ open, tally }: AlertCollection): JobResult {
  const { known, records, replayed } = tally;
  const text = `${records.length === 1 ? '1 change' : `${records.length} changes`} collected, ${open === 1 ? '1 episode' : `${open} episodes`} open`;
  const again = replayed ? `; the service has another database than before: gone through from its beginning, ${known} known` : '';
  return { status: 'OK', lines: [`OK  ${text}${again}`], document: { collected: records.length, known, replayed, open, error: null } };
}

function shown({ open, tally }: AlertCollection): JobResult {
  const { known, records, replayed } = tally;
  return {
    status: 'OK',
    lines: records.map((record) => JSON.stringify(record)),
    document: { dry_run: true, known, replayed, open, records },
  };
}

async function problemOf(error: unknown, { signal }: JobContext, folder: string, tally: Tally | null): Promise<JobResult> {
  const collected = tally?.records.length ?? 0;
  const sofar = collected > 0 ? ` (${collected} collected before)` : '';
  const later = `nothing is lost, the next run goes on from there${sofar}`;
  if (signal.aborted) return failed('WARNING', `ended before all was collected: ${(signal.reason as Error).message}; ${later}`, collected);
  if (error instanceof ServiceUnreachable) {
    return failed('WARNING', `the service does not answer (${error.message}); ${later}; see: systemctl status edge-health`, collected);
  }
  if (error instanceof ServiceRefused) return refused(error, later, collected);
  const problem = diskProblem(error, folder);
  if (problem === null) throw error;
  return failed('CRITICAL', `alerts are not collected: ${problem}; ${later}`, collected);
}

function refused({ code, message, status }: ServiceRefused, later: string, collected: number): JobResult {
  if (status === 503) return failed('WARNING', `${message}; ${later}`, collected);
  if (code === 'unknown_parameter') {
    return failed('CRITICAL', `the service is older than this program: restart it (systemctl restart edge-health); ${later}`, collected);
  }
  const remedy =
    status === 401 || status === 403 ? 'look at rest.token_file of the configuration' : 'look at the log: journalctl -u edge-health';
  return failed('CRITICAL', `the service refuses: ${message}; ${remedy}; ${later}`, collected);
}

function failed(status: JobStatus, error: string, collected = 0): JobResult {
  return { status, lines: [`${status}  ${error}`], document: { collected, error } };
}
