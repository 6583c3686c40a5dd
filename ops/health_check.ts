import { isoUtc } from '../src/core/time/time.ts';
import { checkBackups } from './checks/backups.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor, runCheck } from './checks/check.ts';
import { checkClock } from './checks/clock.ts';
import { checkContainers } from './checks/containers.ts';
import { checkDisks } from './checks/disks.ts';
import { checkJobs } from './checks/jobs.ts';
import { checkNodes } from './checks/nodes.ts';
import { checkPower } from './checks/power.ts';
import { appendToLog, Counters, logFile, type PreviousRun, readPreviousRun, writeForNextRun } from './checks/previous-run.ts';
import { checkService, readService } from './checks/service.ts';
import { inOrder, lineOf, logLines, summarize } from './checks/summary.ts';
import { checkUnits, readUnits } from './checks/units.ts';
import { diskProblem } from './lib/files.ts';
import type { Job } from './lib/job.ts';
import { shareWithTimeout, withTimeout } from './lib/timeout.ts';

const HELP = `Checks the unit and the service, open alerts, storage, the publish rate, ROS nodes and containers, free disk space, the clock,
power, the last backup and the scheduler's jobs. Prints a summary, then one line for each finding with what to do, worst first.
A NOTE is information and does not change the status. What is expected is configured with ops.check. Each run is logged in
logs/health_check_DATE.log below storage.path.

  --all           also shows the checks that are OK
  --quiet         prints nothing if everything is OK
  --dry-run       writes neither the log nor what the next check compares with; nor does --url
`;

const CHECKS: Readonly<Record<string, Check>> = {
  unit: checkUnits,
  service: checkService,
  nodes: checkNodes,
  containers: checkContainers,
  disk: checkDisks,
  clock: checkClock,
  power: checkPower,
  backup: checkBackups,
  jobs: checkJobs,
};

const READ_TIMEOUT_SECONDS = 5;
const WRITE_TIMEOUT_SECONDS = 6;

export const healthCheck: Job = {
  name: 'health_check',
  summary: 'Report what is wrong with this appliance, and what to do',
  usage: 'health_check [--all] [--quiet] [--dry-run]',
  help: HELP,
  options: { all: { type: 'boolean' }, quiet: { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (job, { options }) => {
    const { dataFolder, signal, trigger } = job;
    const startedMs = job.nowMs();
    // With --url the service usually runs on another machine, whose state must not be mixed with this machine's.
    const isRemote = options['url'] !== undefined;
    // If the disk hangs, there is no previous run to compare with; the check of disks reports the hang.
    const read = () => shareWithTimeout(READ_TIMEOUT_SECONDS, `previous run ${dataFolder}`, () => readPreviousRun(dataFolder), signal);
    const previous = isRemote ? null : await read().catch(() => null);
    const context = { ...job, isRemote, counters: new Counters(previous), service: readService(job), units: readUnits(job) };
    const results = (await Promise.all(Object.entries(CHECKS).map(([name, check]) => runCheck(name, check, context)))).flat();
    if (options['dry-run'] !== true && !isRemote) results.push(await saveRun(context, results, previous, startedMs));

    const { status, summary } = summarize(results);
    const ordered = inOrder(results);
    const shown = ordered.filter((result) => options['all'] === true || result.isNote || result.status !== 'OK');
    const checks = ordered.map(({ isNote: _, ...result }) => result);
    return {
      status,
      lines: options['quiet'] === true && status === 'OK' ? [] : [`${status}  ${summary}`, ...shown.map(lineOf)],
      document: { status, time: isoUtc(startedMs), trigger, summary, checks },
    };
  },
};

/** Writes the log and the state that the next run compares with. The result shows whether that succeeded. */
async function saveRun(context: CheckContext, results: readonly CheckResult[], previous: PreviousRun | null, startedMs: number) {
  const { counters, dataFolder, service, signal, trigger } = context;
  const { note, ok, warning } = resultsFor('history');
  // "Since the last check" means the scheduler's last check: a manual run in between must not consume the increases.
  const answer = trigger === 'manual' ? await withTimeout(READ_TIMEOUT_SECONDS, service, signal).catch(() => null) : null;
  const isBetween = answer?.kind === 'answer' && answer.status.ops.scheduler.state === 'running';
  const work = async (): Promise<void> => {
    await appendToLog(context, startedMs, logLines(results, previous, trigger));
    if (isBetween) return;
    const wrong = results.filter(({ status }) => status !== 'OK').map(({ name, status }) => [name, status] as const);
    await writeForNextRun(dataFolder, previous, { counters: counters.now, statuses: Object.fromEntries(wrong.sort()) });
  };
  try {
    await shareWithTimeout(WRITE_TIMEOUT_SECONDS, `write ${dataFolder}`, work, signal);
    return ok(logFile(dataFolder, startedMs));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (trigger === 'manual' && (code === 'EACCES' || code === 'EPERM')) return note('not written: no permission, which does no harm');
    if (code === 'ENOENT') return note(`not written: there is no data folder ${dataFolder} yet`);
    return warning('this check could not be saved', diskProblem(error, dataFolder) ?? message);
  }
}
