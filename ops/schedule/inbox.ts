import * as fs from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Log } from '../../src/core/ports.ts';
import { runSchema } from '../../src/http/api/ops-schema.ts';
import { makeFolder } from '../../src/system/data-folder.ts';
import { replaceFile } from './folders.ts';
import { JOB_NAMES, type JobName, type Run } from './jobs.ts';

const recordSchema = v.strictObject({ name: v.picklist(JOB_NAMES), run: runSchema });

export interface LeftRun {
  readonly name: JobName;
  readonly run: Run;
}

const ENDING = '.json';
/** Read at once; the rest when these are taken. */
const AT_MOST = 1000;

const inbox = (dataFolder: string): string => join(dataFolder, 'ops', 'inbox');

/** Leaves a run that the scheduler did not make, for the scheduler to take in. */
export function leaveRun(dataFolder: string, left: LeftRun): void {
  const folder = inbox(dataFolder);
  if (!fs.existsSync(folder)) makeFolder(folder, 0o750);
  replaceFile(join(folder, `${left.run.started.replaceAll(':', '')}-${process.pid}-${left.name}${ENDING}`), JSON.stringify(left));
}

/** Runs that were left, by their files; null stands for a file that is no record of a run. */
export function leftRuns(dataFolder: string): ReadonlyMap<string, LeftRun | null> {
  const folder = inbox(dataFolder);
  let names: string[];
  try {
    names = fs.readdirSync(folder);
  } catch {
    return new Map();
  }
  const files = names.filter((name) => name.endsWith(ENDING)).sort();
  return new Map(files.slice(0, AT_MOST).map((name) => [join(folder, name), read(join(folder, name))]));
}

function read(file: string): LeftRun | null {
  try {
    return v.parse(recordSchema, JSON.parse(fs.readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

/** Takes in what was left; each run is handed over once. */
export function takeRuns(dataFolder: string, log: Log): LeftRun[] {
  const taken: LeftRun[] = [];
  for (const [file, left] of leftRuns(dataFolder)) {
    try {
      fs.rmSync(file);
    } catch (error) {
      log('warning', 'a run by hand cannot be taken in', { file, error: (error as Error).message });
      continue;
    }
    if (left) taken.push(left);
    else log('warning', 'this was no record of a run; it is removed', { file });
  }
  return taken;
}
