import { execFile } from 'node:child_process';

/** Runs a program of this machine and gives what it prints; null: it is not there, failed, or took too long. */
export type Tool = (file: string, parameters: readonly string[]) => Promise<string | null>;

const SECONDS = 10;
const MAX_BYTES = 4_000_000;

export function toolOf(environment: NodeJS.ProcessEnv): Tool {
  return (file, parameters) =>
    new Promise((resolve) => {
      const options = {
        env: { ...environment, LC_ALL: 'C' },
        timeout: SECONDS * 1000,
        killSignal: 'SIGKILL',
        maxBuffer: MAX_BYTES,
      } as const;
      execFile(file, parameters, options, (error, stdout) => resolve(error === null ? stdout : null));
    });
}
