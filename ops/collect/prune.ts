import type { OpsContext } from '../program.ts';
import { pruneDatedFiles } from '../support/dated-files.ts';

/** Removes what is older than ops.keep_days; what cannot be removed is logged, and tried again with the next day's file. */
export async function prune({ config, log, nowMs }: OpsContext, folder: string, pattern: RegExp): Promise<readonly string[]> {
  try {
    const names = await pruneDatedFiles(folder, pattern, config.ops.keep_days, nowMs());
    if (names.length > 0) log('info', 'removed files older than ops.keep_days', { folder, files: names.join(' ') });
    return names;
  } catch (error) {
    log('warning', 'cannot remove files older than ops.keep_days', { folder, error: (error as Error).message });
    return [];
  }
}
