import type { Container } from '../../../../testkit/container/container.ts';
import { Peer, type Vendor } from '../../../../testkit/dds/peers.ts';

export interface Reply {
  readonly success: boolean;
  readonly message: string;
  readonly roundTripMs: number;
}

/** Calls /safe_shutdown as a program on a DDS implementation does, from a host of the machine's network or from the machine itself. */
export async function callSafeShutdown(
  host: Container['host'],
  vendor: Vendor,
  reason: string,
  requestedBy: string,
  timeoutSeconds: number | string,
  service = '/safe_shutdown',
): Promise<Reply> {
  const fields = { reason, requested_by: requestedBy, timeout: timeoutSeconds };
  const options = Object.entries(fields)
    .flatMap(([name, value]) => ['--set', `${name}=${value}`])
    .concat('--service', service);
  const peer = await Peer.start(host, vendor, 'call', options);
  const { data, round_trip_ms: roundTripMs } = await peer.waitFor('reply', () => true, 120);
  return { ...data, roundTripMs };
}

/** The time of the last message of a unit in the journal that contains these words, in milliseconds since the epoch. */
export async function whenSaid(machine: Container, unit: string, words: RegExp): Promise<number> {
  const { stdout } = await machine.run(['journalctl', '--no-pager', '--quiet', '--output=json', '--unit', unit]);
  const entries = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { MESSAGE: unknown; __REALTIME_TIMESTAMP: string });
  const said = entries.findLast(({ MESSAGE }) => words.test(String(MESSAGE)));
  if (!said) throw new Error(`${unit} has not said ${words}`);
  return Number(said.__REALTIME_TIMESTAMP) / 1000;
}

/** Logs a user in at a terminal of the machine; the output of the terminal is in /var/log/terminal. */
export async function logIn(machine: Container, user: string): Promise<void> {
  await machine.sh(`useradd --create-home --shell /bin/bash ${user}
    systemd-run --quiet --unit=terminal --property=TimeoutStopSec=0.5 sh -c 'sleep 600 | script -qf /var/log/terminal -c "exec login -f ${user}"'`);
  const listed = async (): Promise<boolean> => (await machine.sh('loginctl list-sessions --no-legend')).includes('pts/');
  await machine.until(listed, 120, () => `${user} is not logged in`);
}

/** Holds a lock against shutdowns until the machine goes down, as an upgrade does. */
export async function holdLock(machine: Container): Promise<void> {
  await machine.sh(
    `systemd-run --quiet --unit=upgrade --collect systemd-inhibit --what=shutdown --mode=block --who=apt --why='Upgrading the map' sleep 600`,
  );
  await machine.until(async () => (await machine.sh('systemd-inhibit --list --no-legend || true')).includes('Upgrading'), 120);
}
