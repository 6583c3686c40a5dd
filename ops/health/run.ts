import { stat } from 'node:fs/promises';
import { isoUtc } from '../../src/core/time.ts';
import { diskProblem } from '../lib/disk-problem.ts';
import type { JobContext } from '../lib/job.ts';
import { backupCheck } from './backup-check.ts';
import { type Check, runCheck, type Situation } from './check.ts';
import { clockCheck } from './clock-check.ts';
import { containerCheck } from './container-check.ts';
import { diskCheck } from './disk-check.ts';
import { historyFile, historyLines, writeHistory } from './history.ts';
import { jobCheck } from './job-check.ts';
import { Counters, type Memory, readMemory, writeMemory } from './memory.ts';
import { nodeCheck } from './node-check.ts';
import { askOnce, within } from './patience.ts';
import { powerCheck } from './power-check.ts';
import { askService, type ServiceAnswer } from './service.ts';
import { serviceCheck } from './service-check.ts';
import { unitCheck } from './unit-check.ts';
import { askUnits } from './units.ts';
import { finding, fine, lineOf, note, overall, sorted, type Verdict } from './verdict.ts';

const CHECKS: readonly Check[] = [
  unitCheck,
  serviceCheck,
  nodeCheck,
  containerCheck,
  diskCheck,
  clockCheck,
  powerCheck,
  backupCheck,
  jobCheck,
];

export interface HealthDocument {
  readonly status: Verdict['status'];
  readonly time: string;
  readonly trigger: string;
  readonly summary: string;
  readonly checks: readonly Omit<Verdict, 'isNote'>[];
}

export interface Health {
  /** Worst first. */
  readonly verdicts: readonly Verdict[];
  readonly status: Verdict['status'];
  readonly summary: string;
  readonly document: HealthDocument;
}

export interface HealthOptions {
  /** Whether the history and what the next check needs are written. */
  readonly writes: boolean;
  /** What stands before /proc, /sys, /run and /etc; a test passes another. */
  readonly root?: string;
}

const READ_SECONDS = 5;
const WRITE_SECONDS = 6;

/** Checks everything at once, and writes down what was found. */
export async function checkHealth(context: JobContext, { root = '', writes }: HealthOptions): Promise<Health> {
  const { dataFolder, signal } = context;
  const startedMs = context.nowMs();
  const last = await within(
    READ_SECONDS,
    askOnce(`memory ${dataFolder}`, () => readMemory(dataFolder)),
    signal,
  ).catch(() => null); // On a disk that hangs this check compares with nothing; the disk's own check tells of it.
  const counters = new Counters(last);
  const situation: Situation = { context, root, counters, service: askService(context), units: askUnits(context) };
  const verdicts = (await Promise.all(CHECKS.map((check) => runCheck(check, situation)))).flat();
  if (writes) {
    const isNext = context.trigger !== 'manual' || !(await isScheduled(situation.service, signal));
    verdicts.push(...(await write(context, verdicts, last, isNext ? counters : null, startedMs)));
  }
  const { status, summary } = overall(verdicts);
  const all = sorted(verdicts);
  const checks = all.map(({ isNote: _, ...verdict }) => verdict);
  return { verdicts: all, status, summary, document: { status, time: isoUtc(startedMs), trigger: context.trigger, summary, checks } };
}

/** Then what has grown since the last check is the scheduler's to tell: somebody who looks in between takes nothing from it. */
async function isScheduled(service: Promise<ServiceAnswer>, signal: AbortSignal): Promise<boolean> {
  const answer = await within(READ_SECONDS, service, signal).catch(() => null);
  return answer?.kind === 'answer' && answer.status.ops.scheduler.state === 'running';
}

/** Writes the history and, with `counters`, what the next check compares with; what kept it from that, as a verdict. */
async function write(
  context: JobContext,
  verdicts: readonly Verdict[],
  last: Memory | null,
  counters: Counters | null,
  startedMs: number,
): Promise<Verdict[]> {
  const { dataFolder, signal, trigger } = context;
  const wrong = verdicts.filter(({ status }) => status !== 'OK').map(({ name, status }) => [name, status] as const);
  // The history is one of the checks, as those count it who read its line.
  const lines = historyLines(overall([...verdicts, fine('history', '')]), verdicts, last, startedMs, trigger);
  const work = async (): Promise<void> => {
    await stat(dataFolder); // Which the service makes; not this.
    await writeHistory(context, lines);
    if (counters) await writeMemory(dataFolder, last, { counters: counters.now, statuses: Object.fromEntries(wrong.sort()) });
  };
  try {
    await within(WRITE_SECONDS, askOnce(`write ${dataFolder}`, work), signal);
    return [fine('history', historyFile(dataFolder, startedMs))];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = diskProblem(error, dataFolder) ?? message;
    if (trigger === 'manual' && (code === 'EACCES' || code === 'EPERM'))
      return [note('history', 'not written: this user may not, which does no harm')];
    if (code === 'ENOENT') return [note('history', `not written: there is no data folder ${dataFolder} yet`)];
    return [finding('history', 'WARNING', 'this check could not be written down', why)];
  }
}

/** What people read: the summary, and what is worth a line. */
export function healthLines({ status, summary, verdicts }: Health, { all }: { readonly all: boolean }): string[] {
  const shown = verdicts.filter((verdict) => all || verdict.isNote || verdict.status !== 'OK');
  return [`${status}  ${summary}`, ...shown.map(lineOf)];
}
