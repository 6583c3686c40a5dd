import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { METRICS_FILE, numberOf } from '../../src/core/metrics-files.ts';
import { type Appended, appendLines, datedFiles, utcDay } from '../lib/files.ts';
import { makeFolder } from '../lib/folder.ts';

export interface Written extends Appended {
  readonly file: string;
  /** Whether the file is new. */
  readonly isNew: boolean;
}

/** Appends records to the file of the UTC day of `ms`. Throws the error of the file system. */
export async function appendMetrics(folder: string, header: string, records: string, ms: number): Promise<Written> {
  await makeFolder(folder);
  const { name, isNew } = await fileOfDay(folder, utcDay(ms), header);
  return { ...(await appendLines(join(folder, name), records, { head: header })), file: name, isNew };
}

/** The last file of the day if it has this header, else the next one: files in the order of their numbers are in the order of writing. */
async function fileOfDay(folder: string, day: string, header: string): Promise<{ readonly name: string; readonly isNew: boolean }> {
  const files = (await datedFiles(folder, METRICS_FILE)).filter((file) => file.day === day);
  const last = Math.max(0, ...files.map(({ name }) => numberOf(name)));
  const isNew = last === 0 || !(await canContinue(join(folder, nameOf(day, last)), header));
  return { name: nameOf(day, isNew ? last + 1 : last), isNew };
}

function nameOf(day: string, number: number): string {
  return number === 1 ? `metrics_${day}.csv` : `metrics_${day}.${number}.csv`;
}

/** Whether a file begins with this header, or contains no more than a torn part of it. */
async function canContinue(file: string, header: string): Promise<boolean> {
  const wanted = Buffer.from(header);
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted.length), 0, wanted.length, 0);
    return wanted.subarray(0, bytesRead).equals(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}
