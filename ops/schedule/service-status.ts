import { fileURLToPath } from 'node:url';
import type { OpsDocument } from '../../src/client/documents.ts';
import { PROGRAMS } from '../../src/core/files/programs.ts';
import { serviceManager, watchdogSeconds } from '../../src/core/platform/notify.ts';
import type { Log } from '../../src/core/ports.ts';
import type { ServiceManager } from '../../src/core/supervision.ts';
import { printable } from '../../src/core/text.ts';
import { LocalClock } from './local-time.ts';

/** Interval without a watchdog. */
const BEAT_SECONDS = 15;

/** Interval of watchdog pings: a quarter of the watchdog's timeout, so that two pings may be late. */
export function beatSeconds(environment: NodeJS.ProcessEnv): number {
  return Math.min(BEAT_SECONDS, Math.max(0.05, (watchdogSeconds(environment, process.pid) ?? 60) / 4));
}

/** Returns null if no service manager has started this process. */
export function connectServiceManager(environment: NodeJS.ProcessEnv, log: Log): ServiceManager | null {
  return serviceManager(environment, fileURLToPath(PROGRAMS.sdNotify), log);
}

/** Pings the watchdog. Each call must follow a heartbeat in which every due job was started. */
export function watchdogPing(manager: ServiceManager | null): (status: string) => void {
  let isReady = false;
  let sent = '';
  return (status) => {
    const state = isReady ? ['WATCHDOG=1'] : ['READY=1', 'WATCHDOG=1'];
    if (status !== sent) state.push(`STATUS=${printable(status)}`);
    isReady = true;
    sent = status;
    manager?.notify(state.join('\n'));
  };
}

/** One line for `systemctl status`. */
export function statusLine({ jobs }: OpsDocument, timezone: string | null): string {
  const clock = new LocalClock(timezone);
  const time = (iso: string): string => clock.text(iso).slice(11);
  const scheduled = jobs.filter(({ schedule }) => schedule !== 'off');
  const running = scheduled.filter(({ running_since }) => running_since !== null).map(({ name }) => name);
  const last = scheduled.flatMap(({ last, name }) => (last ? [{ ...last, name }] : [])).sort((a, b) => (a.started < b.started ? 1 : -1))[0];
  const next = scheduled.flatMap(({ name, next }) => (next ? [{ name, next }] : [])).sort((a, b) => (a.next < b.next ? -1 : 1))[0];
  return [
    `${scheduled.length} ${scheduled.length === 1 ? 'job' : 'jobs'}`,
    ...(running.length > 0 ? [`running: ${running.join(', ')}`] : []),
    ...(last ? [`last: ${last.name} ${last.status} ${time(last.started)}`] : []),
    ...(next ? [`next: ${next.name} ${time(next.next)}`] : []),
  ].join('; ');
}
