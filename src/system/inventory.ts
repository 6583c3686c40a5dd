import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What kind of machine this is; asked once. */
export interface Inventory {
  readonly hostname: string;
  readonly model: string;
  readonly os: string;
  readonly kernel: string;
  readonly architecture: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_bytes: number;
  readonly virtual: boolean;
}

const DEADLINE_SECONDS = 20;

/**
 * Runs the inventory program, a process of its own: systeminformation starts further processes and takes a while, which is nothing
 * that the sampling loop should wait for, and its memory is given back when it is done.
 */
export function readInventory(program: URL): Promise<Inventory> {
  return new Promise((resolve, reject) => {
    const options = { timeout: DEADLINE_SECONDS * 1000, killSignal: 'SIGKILL', maxBuffer: 1024 * 1024 } as const;
    execFile(process.execPath, [fileURLToPath(program)], options, (error, output) => {
      if (error) return reject(error);
      try {
        resolve(JSON.parse(output) as Inventory);
      } catch (problem) {
        reject(problem as Error);
      }
    });
  });
}
