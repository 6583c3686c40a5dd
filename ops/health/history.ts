import { join } from 'node:path';
import { isoUtc } from '../../src/core/time.ts';
import { appendLines } from '../lib/append.ts';
import { pruneDatedFiles, utcDay } from '../lib/dated-files.ts';
import { makeFolder } from '../lib/folder.ts';
import type { JobContext } from '../lib/job.ts';
import { hasChanged, type Memory } from './memory.ts';
import { lineOf, type Overall, type Verdict } from './verdict.ts';

const FILES = /^health_check_(\d{4}-\d{2}-\d{2})\.log$/;

export function historyFile(dataFolder: string, nowMs: number): string {
  return join(dataFolder, 'logs', `health_check_${utcDay(nowMs)}.log`);
}

/** A line for the run, and one for each thing that is judged otherwise than last time; what is gone is judged no more. */
export function historyLines(
  overall: Overall,
  verdicts: readonly Verdict[],
  last: Memory | null,
  nowMs: number,
  trigger: string,
): string[] {
  const time = isoUtc(nowMs);
  const changes = verdicts.filter(({ name, status }) => hasChanged(last, name, status));
  return [`${time} ${overall.status}  ${overall.summary} (${trigger})`, ...changes.map((verdict) => `${time}   ${lineOf(verdict)}`)];
}

/** Appends to the file of the day; a new day removes the files that are too old. */
export async function writeHistory({ config, dataFolder, nowMs }: JobContext, lines: readonly string[]): Promise<void> {
  const folder = join(dataFolder, 'logs');
  await makeFolder(folder);
  const text = `${lines.join('\n')}\n`;
  const { size } = await appendLines(historyFile(dataFolder, nowMs()), text);
  if (size === Buffer.byteLength(text)) await pruneDatedFiles(folder, FILES, config.ops.keep_days, nowMs());
}
