import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RestClient } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';

/** Degrees Celsius: below both thresholds, above WARNING, and above CRITICAL. */
const CELSIUS = { cool: 45, warm: 75, hot: 90 } as const;
export const THRESHOLD = { warning: 70, critical: 85 };
/** The service itself takes a second or two (alerts.raise_after_seconds, alerts.clear_after_seconds). */
const TIMEOUT_SECONDS = 30;
const PAUSE_MS = 3000;
const POLL_MS = 200;

/** A thermal zone whose temperature rises and falls, in a sysfs tree for `edge-health run --sys`. */
export class AlertLoad {
  readonly sysRoot: string;
  /** Alerts that were not raised or resolved in time, for display. */
  readonly late: string[] = [];
  readonly #file: number;
  #cycles = 0;

  constructor(folder: string) {
    this.sysRoot = join(folder, 'sys');
    const zone = join(this.sysRoot, 'class/thermal/thermal_zone0');
    mkdirSync(zone, { recursive: true });
    writeFileSync(join(zone, 'type'), 'cpu-thermal\n');
    this.#file = openSync(join(zone, 'temp'), 'w');
    this.#set('cool');
  }

  /** Number of times the temperature rose above both thresholds and fell again. */
  get cycles(): number {
    return this.#cycles;
  }

  /** Runs until it is stopped, and completes the last cycle. */
  async run(rest: RestClient, stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted) {
      await this.#cycle(rest);
      await sleep(PAUSE_MS);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Each step waits for the alert that it causes, so that each cycle produces one episode. */
  async #cycle(rest: RestClient): Promise<void> {
    this.#cycles += 1;
    this.#set('warm');
    const isRaised = await this.#until(rest, 'raised', (alert) => alert !== undefined);
    if (isRaised) {
      this.#set('hot');
      await this.#until(rest, 'CRITICAL', (alert) => alert?.severity === 'CRITICAL');
    }
    this.#set('cool');
    await this.#until(rest, 'resolved', (alert) => alert === undefined);
  }

  async #until(rest: RestClient, what: string, holds: (open: Alert | undefined) => boolean): Promise<boolean> {
    const deadline = performance.now() + TIMEOUT_SECONDS * 1000;
    while (performance.now() < deadline) {
      // A failed request is repeated.
      const open = await rest.json<{ data: Alert[] }>('/alerts?resolved=false').catch(() => null);
      if (open !== null && holds(open.data.find(({ metric }) => metric === 'temperature'))) return true;
      await sleep(POLL_MS);
    }
    this.late.push(`alert ${this.#cycles}: not ${what} within ${TIMEOUT_SECONDS} s`);
    return false;
  }

  /** Writes in place and with the same number of digits, so that a reader sees either the old or the new value. */
  #set(level: keyof typeof CELSIUS): void {
    writeSync(this.#file, `${CELSIUS[level] * 1000}\n`, 0);
  }
}
