import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Tells one boot of this machine from the next: the kernel's id of it and when process 1 was started, as a container is started again
 * under a kernel that runs on. Null where procfs does not tell.
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
  // The name in parentheses may hold anything; of what follows it the 20th field is the start time (proc(5), field 22).
  const started = read('1/stat').split(')').at(-1)?.trim().split(' ')[19] ?? '';
  return kernel === '' && started === '' ? null : `${kernel}/${started}`;
}
