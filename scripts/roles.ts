/**
 * Runs one edge-health process per role in the foreground, as launch/multi_node_monitoring.launch.py does with ROS 2: `node
 * scripts/roles.ts [ROLE…]`. Each log line starts with the role. All processes end on Ctrl-C, or when one of them ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = resolve(import.meta.dirname, '..');
const ROLES = ['edge_brain', 'sensor_node', 'actuator_node'];
const USAGE_ERROR = 64;

const given = process.argv.slice(2);
const unknown = given.filter((role) => !ROLES.includes(role));
if (unknown.length > 0) {
  process.stderr.write(`roles: there is no role ${unknown.join(', ')}; allowed: one or more of ${ROLES.join(', ')}\n`);
  process.exit(USAGE_ERROR);
}
const roles = given.length === 0 ? ROLES : ROLES.filter((role) => given.includes(role));
const width = Math.max(...roles.map((role) => role.length));

function start(role: string): ChildProcess {
  const child = spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', join(ROOT, `config/${role}_config.yaml`)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // The processes must not share a RUNTIME_DIRECTORY inherited from systemd.
    env: { ...process.env, RUNTIME_DIRECTORY: '' },
  });
  const prefix = `${role.padEnd(width)} | `;
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => process.stdout.write(`${prefix}${line}\n`));
  }
  return child;
}

let isStopping = false;
let code = 0;
const running = new Map(roles.map((role) => [role, start(role)]));

function endAll(): void {
  for (const child of running.values()) child.kill('SIGTERM');
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopping = true;
    endAll();
  });
}

await Promise.all(
  [...running].map(async ([role, child]) => {
    const [exitCode, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    running.delete(role);
    if (isStopping) return;
    isStopping = true;
    code = exitCode ?? 1;
    process.stderr.write(`roles: ${role} ended by itself (${by ?? exitCode}); the others are ended too\n`);
    endAll();
  }),
);
process.exitCode = code;
