import type { ServiceManager } from '../../src/core/supervision.ts';
import { printable } from '../../src/core/text.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import type { Zone } from './zone.ts';

/** `12:05` by local clocks. */
export function clockTime(zone: Zone, iso: string): string {
  const ms = Date.parse(iso);
  return new Date(ms + zone.offsetMs(ms)).toISOString().slice(11, 16);
}

/** One line for `systemctl status`. */
export function statusLine({ jobs }: OpsDocument, zone: Zone): string {
  const scheduled = jobs.filter(({ schedule }) => schedule !== 'off');
  const running = scheduled.filter(({ running_since }) => running_since !== null).map(({ name }) => name);
  const ended = scheduled.filter(({ last }) => last !== null);
  const last = ended.reduce<(typeof ended)[number] | null>(
    (a, b) => (a && (a.last?.started ?? '') >= (b.last?.started ?? '') ? a : b),
    null,
  );
  const coming = scheduled.filter(({ next }) => next !== null).sort((a, b) => ((a.next ?? '') < (b.next ?? '') ? -1 : 1))[0];
  return [
    `${scheduled.length} ${scheduled.length === 1 ? 'job' : 'jobs'}`,
    ...(running.length > 0 ? [`running: ${running.join(', ')}`] : []),
    ...(last?.last ? [`last: ${last.name} ${last.last.status} ${clockTime(zone, last.last.started)}`] : []),
    ...(coming?.next ? [`next: ${coming.name} ${clockTime(zone, coming.next)}`] : []),
  ].join('; ');
}

/** Tells the service manager how the scheduler gets on. Each call of `beat` is a ping of the watchdog: it must follow a beat that was made. */
export class Announcer {
  readonly #manager: ServiceManager | null;
  #line = '';
  #isReady = false;

  constructor(manager: ServiceManager | null) {
    this.#manager = manager;
  }

  beat(line: string): void {
    const state = this.#isReady ? ['WATCHDOG=1'] : ['READY=1', 'WATCHDOG=1'];
    this.#isReady = true;
    if (line !== this.#line) state.push(`STATUS=${printable(line)}`);
    this.#line = line;
    this.#manager?.notify(state.join('\n'));
  }

  stopping(): void {
    this.#manager?.notify('STOPPING=1\nSTATUS=stopping: waiting for jobs to end');
  }
}

/** How often a watchdog is pinged: two pings may come late. */
export function pingEveryMs(watchdogSeconds: number | null): number {
  return watchdogSeconds === null ? MINUTE_MS : Math.max(50, (watchdogSeconds / 4) * 1000);
}
