import { isoUtc } from '../../src/core/time.ts';
import { prepareDataFolder } from '../../src/system/data-folder.ts';
import { EXIT, type Job, type JobArguments, type JobContext, type JobResult, UsageError } from '../lib/job.ts';
import { leaveRun } from './inbox.ts';
import { type Held, holderOf, lockByHand, lockNamed } from './job-lock.ts';
import { hasFailed, isJobName, type JobName, lastLines } from './jobs.ts';
import { BUSY_STATUS } from './runners.ts';

/** An outcome whose exit status is none of the usual ones. */
export type ProcessOutcome = JobResult & { readonly exitCode?: number };

/**
 * Runs a program in a process of its own, by hand or as the scheduler's child. A job never runs beside itself, and the scheduler learns of
 * a run by hand. A run that only shows what it would do is nobody's business.
 */
export async function runAlone(program: Job, context: JobContext, given: JobArguments): Promise<ProcessOutcome> {
  const { name } = program;
  const isElsewhere = name === 'health_check' && given.options['url'] !== undefined; // The outcome is not that of this machine.
  if (!isJobName(name) || isElsewhere || given.options['dry-run'] === true) return program.run(context, given);
  const problem = prepareDataFolder(context.dataFolder, context.environment);
  if (problem?.isMissing) throw new UsageError(`storage.path: ${problem.text}`);
  const isByHand = context.trigger === 'manual';
  const lock = isByHand ? lockByHand(context.dataFolder, name, context.nowMs()) : lockNamed(context.dataFolder, name);
  if (!lock) return busy(name, context);
  return withLock(lock, name, () => program.run(context, given), context);
}

function busy(name: JobName, { dataFolder, trigger }: JobContext): ProcessOutcome {
  const line = `UNKNOWN   ${name} runs already, started ${holderOf(dataFolder, name)}; wait for its end, see: edge-health ops list`;
  const outcome: JobResult = { status: 'UNKNOWN', lines: [line], document: { status: 'UNKNOWN', error: line.replace(/^UNKNOWN\s+/, '') } };
  return trigger === 'manual' ? outcome : { ...outcome, exitCode: BUSY_STATUS };
}

async function withLock(lock: Held, name: JobName, work: () => Promise<JobResult>, context: JobContext): Promise<JobResult> {
  const { dataFolder, log, nowMs, signal, trigger } = context;
  const started = isoUtc(nowMs());
  const begun = performance.now();
  const parent = process.ppid;
  const leave = ({ lines, status }: Pick<JobResult, 'status' | 'lines'>): void => {
    // A child of the scheduler reports to it, unless that is gone. Who ended a run by hand knows that it failed.
    if (trigger !== 'manual' && process.ppid === parent) return;
    if (trigger === 'manual' && signal.aborted && hasFailed({ status })) return;
    const duration_seconds = Math.round(performance.now() - begun) / 1000;
    const run = { started, duration_seconds, status, exit_code: EXIT[status], trigger, lines: lastLines(lines) };
    try {
      leaveRun(dataFolder, { name, run });
    } catch (error) {
      log('warning', 'the scheduler will not know of this run', { error: (error as Error).message });
    }
  };
  try {
    const outcome = await work();
    leave(outcome);
    return outcome;
  } catch (error) {
    if (!(error instanceof UsageError)) leave({ status: 'UNKNOWN', lines: [`UNKNOWN   ${name}: ${(error as Error).message}`] });
    throw error;
  } finally {
    lock.release();
  }
}
