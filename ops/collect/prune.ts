import { pruneDatedFiles } from '../lib/dated-files.ts';
import type { JobContext } from '../lib/job.ts';

/** Removes what is older than ops.keep_days; what cannot be removed is logged, and tried again with the next day's file. */
export async function prune({ config, log, nowMs }: JobContext, folder: string, pattern: RegExp): Promise<readonly string[]> {
  try {
    const names = await pruneDatedFiles(folder, pattern, config.ops.keep_days, nowMs());
    if (names.length > 0) log('info', 'removed files older than ops.keep_days', { folder, files: names.join(' ') });
    return names;
  } catch (error) {
    log('warning', 'cannot remove files older than ops.keep_days', { folder, error: (error as Error).message });
    return [];
  }
}
