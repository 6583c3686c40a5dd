import { access, stat } from 'node:fs/promises';
import { uptime } from 'node:os';
import { HOUR_MS } from '../../src/core/time/time.ts';
import { findProgram, runProgram } from '../lib/run-program.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor } from './check.ts';

interface Synchronisation {
  /** Whether the clock follows a reference; null if unknown. */
  readonly synchronised: boolean | null;
  /** Whether a synchronisation service is enabled; null if unknown. */
  readonly enabled: boolean | null;
  readonly source: string;
}

export interface ClockFacts extends Synchronisation {
  /** A container shares the clock of its host and cannot set it. */
  readonly inContainer: boolean;
  readonly uptimeSeconds: number;
}

/** Synchronisation takes a while after boot. */
const GRACE_SECONDS = 600;

export function evaluateClock({ enabled, inContainer, source, synchronised, uptimeSeconds }: ClockFacts): CheckResult {
  const { note, ok, warning } = resultsFor('clock', { synchronised, enabled, source, in_container: inContainer });
  if (synchronised === null) return note(`synchronisation unknown (${source})`);
  if (synchronised) return ok(`synchronised (${source})`);
  if (inContainer) return note('not synchronised as seen from this container; check its host');
  if (uptimeSeconds < GRACE_SECONDS) return note('not synchronised yet after the start of this machine');
  const remedy = enabled === false ? 'timedatectl set-ntp true' : 'see timedatectl timesync-status or chronyc sources; is the network up?';
  return warning('it is not synchronised', `${remedy} (ops.check.clock: false if it need not be)`);
}

/** `NTP=yes` and `NTPSynchronized=no`, one per line. */
export function parseTimedatectl(text: string): Pick<ClockFacts, 'enabled' | 'synchronised'> {
  const value = (name: string): boolean | null => {
    const found = new RegExp(`^${name}=(yes|no)$`, 'm').exec(text)?.[1];
    return found === undefined ? null : found === 'yes';
  };
  return { enabled: value('NTP'), synchronised: value('NTPSynchronized') };
}

/** Parses `chronyc -c tracking`, whose last field is the leap status. Returns null for any other output. */
export function parseChrony(text: string): boolean | null {
  const fields = text.trim().split(',');
  return fields.length < 14 ? null : fields.at(-1) !== 'Not synchronised';
}

/** timesyncd touches this file whenever it sets the clock, at least every 34 minutes while synchronised. */
const TIMESYNCD_FILE = '/run/systemd/timesync/synchronized';
const FRESH_MS = 2 * HOUR_MS;
const TIMEOUT_SECONDS = 5;

async function readSynchronisation({ environment, nowMs, signal }: CheckContext): Promise<Synchronisation> {
  // Avoids starting timedatectl, and the service that timedatectl starts, every five minutes.
  const touched = await stat(TIMESYNCD_FILE).catch(() => null);
  if (touched !== null && Math.abs(nowMs() - touched.mtimeMs) < FRESH_MS)
    return { synchronised: true, enabled: true, source: 'systemd-timesyncd' };
  const run = async (program: string, ...argv: readonly string[]): Promise<string> => {
    if ((await findProgram(program, environment)) === null) return '';
    const { exitCode, stdout } = await runProgram([program, ...argv], { environment, timeoutSeconds: TIMEOUT_SECONDS, signal });
    return exitCode === 0 ? stdout : '';
  };
  const shown = parseTimedatectl(await run('timedatectl', 'show', '-p', 'NTP', '-p', 'NTPSynchronized'));
  if (shown.synchronised !== null) return { ...shown, source: 'timedatectl' };
  const synchronised = parseChrony(await run('chronyc', '-c', '-n', 'tracking'));
  if (synchronised !== null) return { synchronised, enabled: true, source: 'chronyc' };
  return { synchronised: null, enabled: null, source: 'neither timedatectl nor chronyc' };
}

/** Files that systemd, docker and podman leave in a container. */
const CONTAINER_FILES = ['/run/systemd/container', '/.dockerenv', '/run/.containerenv'];

export const checkClock: Check = async (context) => {
  if (!context.config.ops.check.clock) return [];
  const synchronisation = await readSynchronisation(context);
  const found = await Promise.allSettled(CONTAINER_FILES.map((file) => access(file)));
  const inContainer = found.some(({ status }) => status === 'fulfilled');
  return [evaluateClock({ ...synchronisation, inContainer, uptimeSeconds: uptime() })];
};
