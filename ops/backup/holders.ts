import { readFile, stat } from 'node:fs/promises';

/** Processes that hold a lock on a file, as far as the kernel shows them. */
export async function holdersOf(file: string): Promise<number[]> {
  try {
    const { ino } = await stat(file);
    const lines = (await readFile('/proc/locks', 'utf8')).split('\n');
    const pids = lines.map((line) => /\s(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s/.exec(line)).filter((match) => match?.[2] === String(ino));
    return [...new Set(pids.map((match) => Number(match?.[1])))];
  } catch {
    return [];
  }
}
