import * as fs from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { runSchema } from '../../src/client/documents.ts';
import { makeFolder, prepareDataFolder } from '../../src/core/files/data-folder.ts';
import type { Log } from '../../src/core/ports.ts';
import { JOB_NAMES } from '../jobs.ts';
import { diskProblem } from '../lib/files.ts';
import { type Job, type JobArguments, type JobContext, type JobResult, type JobStatus, UsageError } from '../lib/job.ts';
import { BUSY_STATUS } from './execution.ts';
import { holderOf, lockByHand, lockNamed } from './job-lock.ts';
import { isFailure, startRun } from './job-records.ts';
import { replaceFile } from './state.ts';

/** A result that may have an exit status other than the usual ones. */
export type ProcessResult = JobResult & { readonly exitCode?: number };

/**
 * Runs a job or command in this process, which was started manually or by the scheduler. Jobs take their lock first, and manual runs write
 * their result to ops/inbox, where the scheduler counts it. A dry run does neither. With --url, a manual run does not count as a run of
 * this machine's job: it records no result, and health_check, which then writes nothing, takes no lock.
 */
export async function runInOwnProcess(job: Job, context: JobContext, given: JobArguments): Promise<ProcessResult> {
  const { dataFolder, environment, log, nowMs, signal, trigger } = context;
  const name = JOB_NAMES.find((name) => name === job.name);
  const isByHand = trigger === 'manual';
  const isRemote = isByHand && given.options['url'] !== undefined;
  if (!name || (isRemote && name === 'health_check') || given.options['dry-run'] === true) return job.run(context, given);
  const problem = prepareDataFolder(dataFolder, environment);
  if (problem?.isMissing) throw new UsageError(`storage.path: ${problem.text}`);
  const lock = isByHand ? lockByHand(dataFolder, name, nowMs()) : lockNamed(dataFolder, name);
  if (!lock) {
    const error = `${name} is already running, started ${holderOf(dataFolder, name)}; wait until it ends, see: edge-health ops list`;
    const result: JobResult = { status: 'UNKNOWN', lines: [`UNKNOWN   ${error}`], document: { status: 'UNKNOWN', error } };
    return isByHand ? result : { ...result, exitCode: BUSY_STATUS };
  }

  const runOf = startRun(name, trigger);
  const scheduler = process.ppid;
  const leave = (status: JobStatus, lines: readonly string[], failed = isFailure(name, status)): void => {
    // A child of the scheduler reports to it, unless the scheduler has exited. A run that the user stopped is not reported as a failure.
    const isReported = isByHand ? !(signal.aborted && failed) : process.ppid !== scheduler;
    if (isRemote || !isReported) return;
    try {
      leaveRun(dataFolder, { name, run: runOf(status, lines, failed) });
    } catch (error) {
      log('warning', 'run not recorded for the scheduler', {
        job: name,
        error: diskProblem(error, dataFolder) ?? (error as Error).message,
      });
    }
  };
  try {
    const result = await job.run(context, given);
    leave(result.status, result.lines);
    return result;
  } catch (error) {
    if (!(error instanceof UsageError)) leave('UNKNOWN', [`UNKNOWN   ${name}: ${(error as Error).message}`], true);
    throw error;
  } finally {
    lock.release();
  }
}

const leftRunSchema = v.strictObject({ name: v.picklist(JOB_NAMES), run: runSchema });
export type LeftRun = v.InferOutput<typeof leftRunSchema>;

const ENDING = '.json';
/** Files to read at once; the others follow after these are loaded. */
const AT_MOST = 1000;

const inbox = (dataFolder: string): string => join(dataFolder, 'ops', 'inbox');

/** Writes the result of a run to the inbox for the scheduler. */
export function leaveRun(dataFolder: string, left: LeftRun): void {
  const folder = inbox(dataFolder);
  makeFolder(folder, 0o750);
  replaceFile(join(folder, `${left.run.started.replaceAll(':', '')}-${process.pid}-${left.name}${ENDING}`), JSON.stringify(left));
}

/** The runs in the inbox, by file; null for a file that is not a readable run. */
export function leftRuns(dataFolder: string): ReadonlyMap<string, LeftRun | null> {
  const folder = inbox(dataFolder);
  let names: string[];
  try {
    names = fs.readdirSync(folder);
  } catch {
    return new Map(); // The inbox does not exist yet, or this user may not read it.
  }
  const files = names.filter((name) => name.endsWith(ENDING)).sort();
  return new Map(files.slice(0, AT_MOST).map((name) => [join(folder, name), readRun(join(folder, name))]));
}

function readRun(file: string): LeftRun | null {
  try {
    return v.parse(leftRunSchema, JSON.parse(fs.readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

/** Empties the inbox and returns each run once. */
export function takeRuns(dataFolder: string, log: Log): LeftRun[] {
  return [...leftRuns(dataFolder)].flatMap(([file, left]) => {
    try {
      fs.rmSync(file);
    } catch (error) {
      log('warning', 'manual run not removed from the inbox', { file, error: (error as Error).message });
      return [];
    }
    if (!left) log('warning', 'unreadable manual run removed from the inbox', { file });
    return left ?? [];
  });
}
