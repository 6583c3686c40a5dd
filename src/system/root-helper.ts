import { execFile } from 'node:child_process';
import { read, write } from 'node:fs';
import { promisify } from 'node:util';

/** What a command that runs as the service's user has done by the process of root's that started it; nothing else needs root's rights. */
export type RootRequest =
  | { readonly do: 'systemctl'; readonly arguments: readonly string[] }
  | { readonly do: 'replace configuration'; readonly files: readonly SentFile[]; readonly stamp: string }
  | { readonly do: 'put configuration back' };

/** A file below the folder of the configuration. */
export interface SentFile {
  readonly name: string;
  readonly base64: string;
  readonly executable: boolean;
}

export interface RootAnswer {
  /** 0: done; else as a program's exit code. */
  readonly code: number;
  /** What the program printed, or what is wrong. */
  readonly output: string;
}

/** Holds the file descriptor of the connection to root's process, over which each request and each answer is a line of JSON. */
export const ROOT_HELPER = 'EDGE_HEALTH_ROOT_HELPER';
/** Starting a unit waits for its first answer, stopping one for its report. */
const SYSTEMCTL_MS = 200_000;
const CHUNK_BYTES = 64 * 1024;

export function hasRootHelper(environment: NodeJS.ProcessEnv): boolean {
  return environment[ROOT_HELPER] !== undefined;
}

/** Whether units can be started and stopped: by root, or by the process of root's that started this one. */
export function hasRootRights(environment: NodeJS.ProcessEnv): boolean {
  return process.getuid?.() === 0 || hasRootHelper(environment);
}

/** Starts, stops, enables or disables units, with root's rights where this process or the one that started it has them. Never rejects. */
export async function changeUnits(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  try {
    return hasRootHelper(environment)
      ? await askRoot({ do: 'systemctl', arguments: argv }, environment)
      : await systemctl(argv, environment);
  } catch (error) {
    return { code: 1, output: (error as Error).message };
  }
}

/** Runs `systemctl` to its end, whatever that is. */
export function systemctl(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  return new Promise((resolve) => {
    execFile('systemctl', argv, { env: environment, timeout: SYSTEMCTL_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') });
    });
  });
}

/** Has root's process do something, one thing at a time. Rejects where it is gone. */
export async function askRoot(request: RootRequest, environment: NodeJS.ProcessEnv): Promise<RootAnswer> {
  const fd = Number(environment[ROOT_HELPER]);
  const line = Buffer.from(`${JSON.stringify(request)}\n`);
  for (let done = 0; done < line.length; ) done += (await promisify(write)(fd, line, done)).bytesWritten;
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let text = '';
  while (!text.endsWith('\n')) {
    const { bytesRead } = await promisify(read)(fd, chunk, 0, chunk.length, null);
    if (bytesRead === 0) throw new Error('the process of root that started this one is gone');
    text += chunk.toString('utf8', 0, bytesRead);
  }
  return JSON.parse(text) as RootAnswer;
}
