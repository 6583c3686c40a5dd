/** Makes and removes network namespaces (root, iproute2), also those of test processes that were killed. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';

/** Namespaces are called <prefix>-<pid of the test>-<random>-<what>, so that the leftovers of a killed test can be told. */
const PREFIX = 'ehtest';
const NAMESPACES = '/run/netns';

/** Runs a program to its end; its standard output. Throws with what it said when it fails. */
export function run(program: string, args: readonly string[]): string {
  const { status, signal, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${signal ?? `status ${status}`}\n${stderr}${stdout}`);
  return stdout;
}

const names = new Set<string>();
let guarded = false;

/** However this process ends, short of SIGKILL, its namespaces go first. What a SIGKILL left goes when the next one begins. */
function guard(): void {
  if (guarded) return;
  guarded = true;
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

/** Makes a network namespace; its name. */
export function addNamespace(what: string): string {
  guard();
  const name = `${PREFIX}-${process.pid}-${randomBytes(3).toString('hex')}-${what}`;
  run('ip', ['netns', 'add', name]);
  names.add(name);
  return name;
}

/** Ends what still runs in the namespace and takes its name away; with the last process its interfaces go too. */
export function removeNamespace(name: string): void {
  const { stdout } = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
  for (const pid of (stdout ?? '').split('\n').filter(Boolean)) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It ended by itself.
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
