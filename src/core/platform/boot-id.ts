import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Identifies a boot of this machine by the kernel's boot id and the start time of process 1, because a container can be restarted while the
 * kernel keeps running. Null if procfs shows neither.
 */
export function readBootId(procRoot: string): string | null {
  const read = (path: string): string => {
    try {
      return readFileSync(join(procRoot, path), 'utf8').trim();
    } catch {
      return '';
    }
  };
  const kernel = read('sys/kernel/random/boot_id');
  // The name in parentheses may contain any character. The 20th field after it is the start time (proc(5), field 22).
  const started = read('1/stat').split(')').at(-1)?.trim().split(' ')[19] ?? '';
  return kernel === '' && started === '' ? null : `${kernel}/${started}`;
}
