import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Container } from '../../testkit/container/container.ts';

export const UNIT = 'edge-health';

/** What the containers of one benchmark have in place of a test. */
export class Endings {
  readonly #endings: (() => unknown)[] = [];

  teardown(ending: () => unknown): void {
    this.#endings.push(ending);
  }

  async end(): Promise<void> {
    for (const ending of this.#endings.splice(0).reverse()) await ending();
  }
}

/** The pid on this machine of the unit's main process in a container. */
export async function mainPid(machine: Container): Promise<number> {
  const inside = await machine.show(UNIT, 'MainPID');
  const namespace = readlinkSync(`/proc/${machine.pid1}/ns/pid`);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const numbers = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/);
      if (numbers?.at(-1) === inside && readlinkSync(`/proc/${pid}/ns/pid`) === namespace) return Number(pid);
    } catch {
      // It has ended meanwhile.
    }
  }
  throw new Error(`process ${inside} of the container is not to be seen here`);
}

/** Seconds from the unit's being started to its READY, of its last start. */
export async function startSeconds(machine: Container): Promise<number> {
  const [begun, ready] = await Promise.all(
    ['InactiveExitTimestampMonotonic', 'ActiveEnterTimestampMonotonic'].map((name) => machine.show(UNIT, name).then(Number)),
  );
  if (!begun || !ready || ready < begun) throw new Error(`the unit is not active: ${await machine.show(UNIT, 'ActiveState')}`);
  return (ready - begun) / 1e6;
}

/** Sends a signal to the main process, and measures the seconds until another one has published a health status. */
export async function secondsUntilBack(machine: Container, signal: string): Promise<number> {
  const before = await machine.show(UNIT, 'MainPID');
  const begun = performance.now();
  await machine.systemctl('kill', '--kill-whom=main', `--signal=${signal}`, UNIT);
  const killed = await machine.sh('date -u +%Y-%m-%dT%H:%M:%S');
  await machine.until(
    async () => {
      const pid = await machine.show(UNIT, 'MainPID');
      if (pid === before || pid === '0') return false;
      const health = await machine.json<{ timestamp?: string }>('/health').catch(() => null);
      return health?.timestamp !== undefined && health.timestamp > killed;
    },
    60,
    () => 'it is not back',
  );
  return (performance.now() - begun) / 1000;
}
