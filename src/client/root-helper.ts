import { execFile } from 'node:child_process';
import { read, write } from 'node:fs';
import { promisify } from 'node:util';

/** The steps that a command which runs as the service's user requests from its parent process, which runs as root. */
export type RootRequest =
  | { readonly do: 'systemctl'; readonly arguments: readonly string[] }
  | { readonly do: 'replace configuration'; readonly files: readonly SentFile[]; readonly stamp: string }
  | { readonly do: 'put configuration back' };

/** A file of the configuration folder. */
export interface SentFile {
  readonly name: string;
  readonly base64: string;
  readonly executable: boolean;
}

export interface RootAnswer {
  /** Exit code; 0: done. */
  readonly code: number;
  /** Output of the program, or the error. */
  readonly output: string;
}

/** Variable with the file descriptor of the connection to root's process. Each request and each response is a line of JSON. */
export const ROOT_HELPER = 'EDGE_HEALTH_ROOT_HELPER';
/** Starting a unit waits until the service responds; stopping the harness waits for its report. */
const SYSTEMCTL_MS = 200_000;
const CHUNK_BYTES = 64 * 1024;

export function hasRootHelper(environment: NodeJS.ProcessEnv): boolean {
  return environment[ROOT_HELPER] !== undefined;
}

/** Whether units can be started and stopped: this process or its parent runs as root. */
export function hasRootRights(environment: NodeJS.ProcessEnv): boolean {
  return process.getuid?.() === 0 || hasRootHelper(environment);
}

/** Starts, stops, enables or disables units, with root's rights if this process or its parent has them. Never rejects. */
export async function changeUnits(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  try {
    return hasRootHelper(environment)
      ? await requestFromRoot({ do: 'systemctl', arguments: argv }, environment)
      : await systemctl(argv, environment);
  } catch (error) {
    return { code: 1, output: (error as Error).message };
  }
}

/** Runs `systemctl`. Never rejects. */
export function systemctl(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  return new Promise((resolve) => {
    execFile('systemctl', argv, { env: environment, timeout: SYSTEMCTL_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') });
    });
  });
}

/** Sends a request to root's process, one at a time. Rejects if that process has ended. */
export async function requestFromRoot(request: RootRequest, environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  const fd = Number(environment[ROOT_HELPER]);
  const line = Buffer.from(`${JSON.stringify(request)}\n`);
  for (let done = 0; done < line.length; ) done += (await promisify(write)(fd, line, done)).bytesWritten;
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let text = '';
  while (!text.endsWith('\n')) {
    const { bytesRead } = await promisify(read)(fd, chunk, 0, chunk.length, null);
    if (bytesRead === 0) throw new Error('the parent process, which runs as root, has ended');
    text += chunk.toString('utf8', 0, bytesRead);
  }
  return JSON.parse(text) as RootAnswer;
}
