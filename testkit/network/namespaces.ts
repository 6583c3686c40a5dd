/** Creates and removes network namespaces, including those of killed test processes. Needs root and iproute2. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';

/** Names are <prefix>-<pid of the test>-<random>-<purpose>, so that the namespaces of a killed test can be found. */
const PREFIX = 'ehtest';
const NAMESPACES = '/run/netns';

/** Runs a program to its end; returns its standard output. Throws with its output if it fails. */
export function run(program: string, args: readonly string[]): string {
  const { status, signal, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${signal ?? `status ${status}`}\n${stderr}${stdout}`);
  return stdout;
}

const names = new Set<string>();
let isRegistered = false;

/** Removes the namespaces when this process exits or gets a signal. The next process removes those left by a SIGKILL. */
function removeOnExit(): void {
  if (isRegistered) return;
  isRegistered = true;
  removeLeftovers();
  const removeAll = (): void => {
    for (const name of names) removeNamespace(name);
  };
  process.on('exit', removeAll);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.once(signal, () => {
      removeAll();
      process.kill(process.pid, signal);
    });
  }
}

/** Creates a network namespace and returns its name. */
export function addNamespace(purpose: string): string {
  removeOnExit();
  const name = `${PREFIX}-${process.pid}-${randomBytes(3).toString('hex')}-${purpose}`;
  run('ip', ['netns', 'add', name]);
  names.add(name);
  return name;
}

/** Kills the processes in the namespace and deletes it; the kernel removes its interfaces after the last process. */
export function removeNamespace(name: string): void {
  const { stdout } = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
  for (const pid of (stdout ?? '').split('\n').filter(Boolean)) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // The process has already ended.
    }
  }
  spawnSync('ip', ['netns', 'delete', name]);
  names.delete(name);
}

/** Removes the namespaces of tests that were killed. */
function removeLeftovers(): void {
  let present: string[] = [];
  try {
    present = readdirSync(NAMESPACES);
  } catch {
    return;
  }
  for (const name of present) {
    const owner = new RegExp(`^${PREFIX}-(\\d+)-`).exec(name)?.[1];
    if (owner === undefined) continue;
    try {
      process.kill(Number(owner), 0);
    } catch {
      removeNamespace(name);
    }
  }
}
