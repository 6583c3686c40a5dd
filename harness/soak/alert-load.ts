import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Way } from './way.ts';

/** Degrees that are below both thresholds, above the one for WARNING, and above the one for CRITICAL. */
const CELSIUS = { cool: 45, warm: 75, hot: 90 } as const;
export const THRESHOLD = { warning: 70, critical: 85 };
/** An answer of the service takes a second or two (alerts.raise_after_seconds, alerts.clear_after_seconds). */
const ANSWER_SECONDS = 30;
const REST_SECONDS = 3;
const LOOK_MS = 50;
const METRIC = '/temperature/';

/** A thermal zone whose temperature rises and falls: a steady cause of real alerts. A sysfs tree of its own, for `edge-health run --sys`. */
export class AlertLoad {
  readonly sysRoot: string;
  readonly #file: number;
  readonly #way: Way;
  readonly #seen = new Set<string>();
  readonly #unanswered: string[] = [];
  #turns = 0;

  /** `way` is by which it hears how the service answers. */
  constructor(folder: string, way: Way) {
    this.sysRoot = join(folder, 'sys');
    this.#way = way;
    const zone = join(this.sysRoot, 'class/thermal/thermal_zone0');
    mkdirSync(zone, { recursive: true });
    writeFileSync(join(zone, 'type'), 'cpu-thermal\n');
    this.#file = openSync(join(zone, 'temp'), 'w');
    this.#set('cool');
  }

  get turns(): number {
    return this.#turns;
  }

  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  /** Rises and falls until it is told to end; the last turn is brought to its end. */
  async run(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await this.#turn();
      await pause(REST_SECONDS * 1000);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  async #turn(): Promise<void> {
    this.#turns += 1;
    const open = (): string | undefined => this.#way.episodeIds.find((id) => id.includes(METRIC) && !this.#seen.has(id));
    this.#set('warm');
    if (await this.#until('raised', () => open() !== undefined)) {
      const id = open() as string;
      this.#seen.add(id);
      this.#set('hot');
      await this.#until('CRITICAL', () => this.#way.last(id) === 'CRITICAL');
      this.#set('cool');
      await this.#until('resolved', () => this.#way.last(id)?.endsWith('resolved') === true);
    }
    this.#set('cool');
  }

  async #until(what: string, holds: () => boolean): Promise<boolean> {
    const deadline = performance.now() + ANSWER_SECONDS * 1000;
    while (!holds()) {
      if (performance.now() > deadline) {
        this.#unanswered.push(`turn ${this.#turns}: not ${what} within ${ANSWER_SECONDS} s`);
        return false;
      }
      await pause(LOOK_MS);
    }
    return true;
  }

  /** In place and with as many digits as before: a reader sees the one or the other. */
  #set(level: keyof typeof CELSIUS): void {
    writeSync(this.#file, `${CELSIUS[level] * 1000}\n`, 0);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
