import { printable } from '../src/core/text.ts';
import { isoUtc } from '../src/core/time.ts';
import { backupsCheck } from './checks/backups.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor, runCheck } from './checks/check.ts';
import { clockCheck } from './checks/clock.ts';
import { containersCheck } from './checks/containers.ts';
import { disksCheck } from './checks/disks.ts';
import { jobsCheck } from './checks/jobs.ts';
import { nodesCheck } from './checks/nodes.ts';
import { powerCheck } from './checks/power.ts';
import { appendToLog, Counters, hasChanged, logFile, type PreviousRun, readPreviousRun, writeForNextRun } from './checks/previous-run.ts';
import { readService, serviceCheck } from './checks/service.ts';
import { readUnits, unitsCheck } from './checks/units.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { type Job, type JobStatus, worst } from './lib/job.ts';
import { sharePending, withTimeout } from './lib/timeout.ts';

const HELP = `Checks the unit and the service, open alerts, storage, the publish rate, ROS nodes and containers, free disk space, the clock,
power, the last backup and the scheduler's jobs. Prints a summary, then one line for each finding with what to do, worst first.
What is expected is configured with ops.check. Each run is logged in logs/health_check_DATE.log below storage.path.

  --all           a line for what is well, too
  --quiet         nothing at all when all is well
  --dry-run       writes neither the log nor what the next check compares with; nor does --url
`;

const CHECKS: readonly Check[] = [
  unitsCheck,
  serviceCheck,
  nodesCheck,
  containersCheck,
  disksCheck,
  clockCheck,
  powerCheck,
  backupsCheck,
  jobsCheck,
];

const READ_TIMEOUT_SECONDS = 5;
const WRITE_TIMEOUT_SECONDS = 6;

export const healthCheck: Job = {
  name: 'health_check',
  summary: 'What is wrong with this appliance, and what to do about it',
  usage: 'health_check [--all] [--quiet] [--dry-run]',
  help: HELP,
  options: { all: { type: 'boolean' }, quiet: { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (job, { options }) => {
    const { dataFolder, signal, trigger } = job;
    const startedMs = job.nowMs();
    // With --url the service is mostly that of another machine, whose state must not be mixed with that of this one.
    const isElsewhere = options['url'] !== undefined;
    const reading = isElsewhere ? null : sharePending(`previous run ${dataFolder}`, () => readPreviousRun(dataFolder));
    // On a disk that hangs there is nothing to compare with; the check of disks reports that.
    const previous = reading && (await withTimeout(READ_TIMEOUT_SECONDS, reading, signal).catch(() => null));
    const context = { ...job, counters: new Counters(previous), service: readService(job), units: readUnits(job) };
    const results = (await Promise.all(CHECKS.map((check) => runCheck(check, context)))).flat();
    if (options['dry-run'] !== true && !isElsewhere) results.push(await writeRun(context, results, previous, startedMs));

    const { status, summary } = summarize(results);
    const shown = worstFirst(results).filter((result) => options['all'] === true || result.isNote || result.status !== 'OK');
    const isSilent = options['quiet'] === true && status === 'OK';
    const checks = worstFirst(results).map(({ isNote: _, ...result }) => result);
    return {
      status,
      lines: isSilent ? [] : [`${status}  ${summary}`, ...shown.map(lineOf)],
      document: { status, time: isoUtc(startedMs), trigger, summary, checks },
    };
  },
};

const ORDER: readonly JobStatus[] = ['CRITICAL', 'WARNING', 'UNKNOWN', 'OK'];
const MAX_CHARACTERS = 400;
const MAX_NAMED = 5;

/** Worst first, notes before what is plainly well; otherwise in the order given. */
export function worstFirst(results: readonly CheckResult[]): CheckResult[] {
  const weight = ({ isNote, status }: CheckResult): number => 2 * ORDER.indexOf(status) + (isNote ? 0 : 1);
  return results.toSorted((a, b) => weight(a) - weight(b));
}

/** Names and messages also come from outside: they cannot start a line of their own or fill a screen. */
export function lineOf({ message, name, remedy, status }: CheckResult): string {
  return `${status}  ${printable(`${name}: ${message}${remedy === null ? '' : `; ${remedy}`}`, MAX_CHARACTERS)}`;
}

/** `2 of 11 checks: disk /, container web`, or `11 checks`. */
export function summarize(results: readonly CheckResult[]): { readonly status: JobStatus; readonly summary: string } {
  const status = worst(results.map((result) => result.status));
  const names = worstFirst(results).flatMap((result) => (result.status === 'OK' ? [] : [result.name]));
  const checks = results.length === 1 ? '1 check' : `${results.length} checks`;
  if (names.length === 0) return { status, summary: checks };
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return { status, summary: printable(`${names.length} of ${checks}: ${names.slice(0, MAX_NAMED).join(', ')}${more}`, MAX_CHARACTERS) };
}

/** Lines for the log: one for the run, and one for each thing whose status has changed. */
export function logLines(results: readonly CheckResult[], previous: PreviousRun | null, trigger: string): string[] {
  const { status, summary } = summarize([...results, resultsFor('history').ok('')]); // It is a check, too, as printed.
  const changed = results.filter((result) => hasChanged(previous, result.name, result.status));
  return [`${status}  ${summary} (${trigger})`, ...changed.map((result) => `  ${lineOf(result)}`)];
}

/** Writes the log and what the next run compares with; the result says whether that was possible. */
async function writeRun(context: CheckContext, results: readonly CheckResult[], previous: PreviousRun | null, startedMs: number) {
  const { counters, dataFolder, service, signal, trigger } = context;
  const { note, ok, warning } = resultsFor('history');
  // "Since the last check" means the scheduler's: a run by hand in between does not take its increases away.
  const answer = trigger === 'manual' ? await withTimeout(READ_TIMEOUT_SECONDS, service, signal).catch(() => null) : null;
  const isBetween = answer?.kind === 'answer' && answer.status.ops.scheduler.state === 'running';
  const work = async (): Promise<void> => {
    await appendToLog(context, startedMs, logLines(results, previous, trigger));
    if (isBetween) return;
    const wrong = results.filter(({ status }) => status !== 'OK').map(({ name, status }) => [name, status] as const);
    await writeForNextRun(dataFolder, previous, { counters: counters.now, statuses: Object.fromEntries(wrong.sort()) });
  };
  try {
    await withTimeout(WRITE_TIMEOUT_SECONDS, sharePending(`write ${dataFolder}`, work), signal);
    return ok(logFile(dataFolder, startedMs));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (trigger === 'manual' && (code === 'EACCES' || code === 'EPERM')) return note('not written: no permission, which does no harm');
    if (code === 'ENOENT') return note(`not written: there is no data folder ${dataFolder} yet`);
    return warning('this check could not be saved', diskProblem(error, dataFolder) ?? message);
  }
}
