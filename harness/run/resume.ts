import * as fs from 'node:fs';
import { join } from 'node:path';
import { formatDuration } from '../../src/core/duration.ts';
import { type Clocked, RECORD_FILE, type RecordEntry } from '../record/entries.ts';
import { type Opened, RecordWriter } from '../record/writer.ts';
import { EXIT, Refusal } from './refusal.ts';
import type { SoFar } from './so-far.ts';

export interface UnfinishedOptions {
  readonly folder: string;
  /** Null: whatever the record says. */
  readonly durationSeconds: number | null;
  /** Has been told every entry by `onEntry`. */
  readonly soFar: SoFar;
  readonly clocks: () => Clocked;
  readonly onEntry: (entry: RecordEntry) => void;
}

/** The unfinished run of a folder, to go on with; null: there is none. Throws Refusal for another one, and RecordError. */
export function openUnfinished({ clocks, durationSeconds, folder, onEntry, soFar }: UnfinishedOptions): Opened | null {
  const file = join(folder, RECORD_FILE);
  if (!fs.existsSync(file) || fs.statSync(file).size === 0) return null;
  const opened = RecordWriter.open(folder, clocks, onEntry);
  const planned = formatDuration(soFar.plannedSeconds, 'h');
  let problem: string;
  if (soFar.isComplete)
    problem = `a run of ${planned} that is complete. Choose another folder with --out, or write its report anew with: edge-health harness report ${folder}`;
  else if (durationSeconds !== null && durationSeconds !== soFar.plannedSeconds)
    problem = `an unfinished run of ${planned}, not of ${formatDuration(durationSeconds, 'h')}. Leave --duration out to go on with it, or choose another folder with --out`;
  else return opened;
  opened.writer.close();
  throw new Refusal(EXIT.usage, `${folder} holds ${problem}`);
}
