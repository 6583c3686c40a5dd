import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Hardware and operating system of this machine; read once. */
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

const TIMEOUT_SECONDS = 20;

/**
 * Runs the inventory program as a separate process: systeminformation starts further processes and takes seconds, which must not delay the
 * sampling loop, and its memory is freed at the end.
 */
export function readInventory(program: URL): Promise<Inventory> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_SECONDS * 1000, killSignal: 'SIGKILL', maxBuffer: 1024 * 1024 } as const;
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
