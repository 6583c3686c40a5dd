import { access, stat } from 'node:fs/promises';
import { uptime } from 'node:os';
import type { Check, Situation } from './check.ts';
import { find, runTool } from './tool.ts';
import { finding, fine, note, type Verdict } from './verdict.ts';

/** Whether the clock follows a reference; null: nobody here tells. */
export interface ClockFacts {
  readonly synchronised: boolean | null;
  /** Whether a service for it is enabled; null: not known. */
  readonly enabled: boolean | null;
  readonly source: string;
  /** A container has the clock of its host, and cannot set it. */
  readonly inContainer: boolean;
  readonly uptimeSeconds: number;
}

/** After the start of the machine it takes a while. */
const GRACE_SECONDS = 600;

export function judgeClock({ enabled, inContainer, source, synchronised, uptimeSeconds }: ClockFacts): Verdict {
  const measured = { synchronised, enabled, source, in_container: inContainer };
  if (synchronised === null) return note('clock', `nothing here tells whether it is synchronised (${source})`, measured);
  if (synchronised) return fine('clock', `synchronised (${source})`, measured);
  if (inContainer) return note('clock', 'not synchronised as seen from this container; look on its host', measured);
  if (uptimeSeconds < GRACE_SECONDS) return note('clock', 'not synchronised yet after the start of this machine', measured);
  const remedy =
    enabled === false ? 'timedatectl set-ntp true' : 'timedatectl timesync-status or chronyc sources tell why; is the network up?';
  return finding('clock', 'WARNING', 'it is not synchronised', `${remedy} (ops.check.clock: false if it need not be)`, measured);
}

/** `NTP=yes` and `NTPSynchronized=no`, a line each. */
export function parseTimedatectl(text: string): Pick<ClockFacts, 'enabled' | 'synchronised'> {
  const value = (name: string): boolean | null => {
    const found = new RegExp(`^${name}=(yes|no)$`, 'm').exec(text)?.[1];
    return found === undefined ? null : found === 'yes';
  };
  return { enabled: value('NTP'), synchronised: value('NTPSynchronized') };
}

/** The last field of `chronyc -c tracking` is the leap status; null: that is not what it printed. */
export function parseChrony(text: string): boolean | null {
  const fields = text.trim().split(',');
  return fields.length < 14 ? null : fields.at(-1) !== 'Not synchronised';
}

/** timesyncd touches it whenever it has set the clock, which it does at least every 34 minutes while it can. */
const TOUCHED = '/run/systemd/timesync/synchronized';
const FRESH_MS = 2 * 3_600_000;
const SECONDS = 5;

type Found = Pick<ClockFacts, 'enabled' | 'source' | 'synchronised'>;

async function readClock({ context, root }: Situation, signal: AbortSignal): Promise<Found> {
  // Spares a program, and that one a service, every five minutes.
  const touchedMs = await stat(root + TOUCHED).then(
    ({ mtimeMs }) => mtimeMs,
    () => null,
  );
  if (touchedMs !== null && Math.abs(context.nowMs() - touchedMs) < FRESH_MS)
    return { synchronised: true, enabled: true, source: 'systemd-timesyncd' };
  const { environment } = context;
  const ask = async (argv: readonly string[]): Promise<string | null> => {
    if ((await find(argv[0] ?? '', environment)) === null) return null;
    const { code, stdout } = await runTool(argv, { environment, seconds: SECONDS, signal });
    return code === 0 ? stdout : null;
  };
  const shown = await ask(['timedatectl', 'show', '-p', 'NTP', '-p', 'NTPSynchronized']);
  const parsed = shown === null ? null : parseTimedatectl(shown);
  if (parsed !== null && parsed.synchronised !== null) return { ...parsed, source: 'timedatectl' };
  const tracking = await ask(['chronyc', '-c', '-n', 'tracking']);
  const followed = tracking === null ? null : parseChrony(tracking);
  if (followed !== null) return { synchronised: followed, enabled: true, source: 'chronyc' };
  return { synchronised: null, enabled: null, source: 'neither timedatectl nor chronyc' };
}

/** Files that systemd, docker and podman leave in a container. */
const CONTAINER_MARKS = ['/run/systemd/container', '/.dockerenv', '/run/.containerenv'];

export const clockCheck: Check = {
  name: 'clock',
  seconds: 12,
  run: async (situation, signal) => {
    if (!situation.context.config.ops.check.clock) return [];
    const found = await readClock(situation, signal);
    const marks = CONTAINER_MARKS.map((file) =>
      access(situation.root + file).then(
        () => true,
        () => false,
      ),
    );
    const inContainer = (await Promise.all(marks)).includes(true);
    return [judgeClock({ ...found, inContainer, uptimeSeconds: uptime() })];
  },
};
