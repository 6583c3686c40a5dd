import type { Container } from '../../testkit/container/container.ts';

export const UNIT = 'edge-health';

/** Seconds from fork to READY in the last start of the unit. */
export async function startSeconds(machine: Container): Promise<number> {
  const [begun, ready] = await Promise.all(
    ['InactiveExitTimestampMonotonic', 'ActiveEnterTimestampMonotonic'].map((name) => machine.show(UNIT, name).then(Number)),
  );
  if (!begun || !ready || ready < begun) throw new Error(`the unit is not active: ${await machine.show(UNIT, 'ActiveState')}`);
  return (ready - begun) / 1e6;
}

/** Sends a signal to the main process and measures the seconds until a new process has published a health status. */
export async function measureRecoverySeconds(machine: Container, signal: string): Promise<number> {
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
    () => 'the service has not recovered',
  );
  return (performance.now() - begun) / 1000;
}
