import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { readIfThere, writeAtomically } from '../../src/core/files/atomic-file.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { appendLines, makeFolder, pruneDatedFiles, utcDay } from '../lib/files.ts';
import type { JobContext, JobStatus } from '../lib/job.ts';

const previousRunSchema = v.object({
  counters: v.record(v.string(), v.object({ of: v.string(), value: v.number() })),
  statuses: v.record(v.string(), v.picklist(['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'])),
});

/** What a run saves for the next one: its counters, and the status of each thing that was not OK. */
export type PreviousRun = v.InferOutput<typeof previousRunSchema>;

const stateFile = (dataFolder: string): string => join(dataFolder, 'ops', 'health_check.json');

/** Returns null if there was no run yet or its file is damaged; then nothing counts as changed. */
export async function readPreviousRun(dataFolder: string): Promise<PreviousRun | null> {
  try {
    const text = await readIfThere(stateFile(dataFolder));
    return text === null ? null : v.parse(previousRunSchema, JSON.parse(text));
  } catch {
    return null;
  }
}

/** Writes nothing if nothing has changed, which is the usual case, to reduce flash wear. */
export async function writeForNextRun(dataFolder: string, previous: PreviousRun | null, next: PreviousRun): Promise<void> {
  const text = `${JSON.stringify(next)}\n`;
  if (previous !== null && text === `${JSON.stringify(previous)}\n`) return;
  await makeFolder(join(dataFolder, 'ops'));
  await writeAtomically(stateFile(dataFolder), text);
}

/** Counters that only increase until their owner restarts. */
export class Counters {
  readonly #previous: PreviousRun['counters'];
  readonly #next = new Map<string, { of: string; value: number }>();

  constructor(previous: PreviousRun | null) {
    this.#previous = previous?.counters ?? {};
  }

  /**
   * The increase of a counter since the previous run; 0 for a new counter. `of` identifies the counter's owner, such as this boot: if it
   * differs, the counter has restarted at zero.
   */
  increase(name: string, of: string, value: number): number {
    this.#next.set(name, { of, value });
    const before = Object.hasOwn(this.#previous, name) ? this.#previous[name] : undefined;
    if (!before) return 0;
    return before.of === of && value >= before.value ? value - before.value : value;
  }

  /** The current values; the previous ones for counters that could not be read in this run. */
  get now(): PreviousRun['counters'] {
    const all = new Map([...Object.entries(this.#previous), ...this.#next]);
    return Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Whether the status of a thing differs from the previous run; a thing without a previous status counts as OK. */
export function hasChanged(previous: PreviousRun | null, name: string, status: JobStatus): boolean {
  const before = previous !== null && Object.hasOwn(previous.statuses, name) ? previous.statuses[name] : undefined;
  return (before ?? 'OK') !== status;
}

const LOG_FILES = /^health_check_(\d{4}-\d{2}-\d{2})\.log$/;

export function logFile(dataFolder: string, nowMs: number): string {
  return join(dataFolder, 'logs', `health_check_${utcDay(nowMs)}.log`);
}

/** Appends lines to the log of the day. The first run of a day removes expired logs. */
export async function appendToLog({ config, dataFolder, nowMs }: JobContext, startedMs: number, lines: readonly string[]): Promise<void> {
  await stat(dataFolder); // Only the service creates it.
  await makeFolder(join(dataFolder, 'logs'));
  const text = lines.map((line) => `${isoUtc(startedMs)} ${line}\n`).join('');
  const { size } = await appendLines(logFile(dataFolder, nowMs()), text);
  if (size === Buffer.byteLength(text)) await pruneDatedFiles(join(dataFolder, 'logs'), LOG_FILES, config.ops.keep_days, nowMs());
}
