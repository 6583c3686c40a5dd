import type { Log } from '../core/ports.ts';
import { chooseSensor, findSensors, isPossibleCelsius, parseMillidegrees, type SensorChoice } from './sensors.ts';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';
import { TextFile } from './text-file.ts';

/** How often to look for a sensor that is missing or stopped answering: a driver may be loaded, hwmon numbers may move. */
const SEARCH_EVERY_SECONDS = 10;

/**
 * The CPU's or SoC's temperature. Once a sensor is chosen it stays the one: when it fails the metric is unavailable
 * rather than silently another sensor's, and it is looked up again by its name.
 */
export class TemperatureSource implements Source {
  readonly metric = 'temperature';
  readonly #sysRoot: string;
  readonly #configured: string | null;
  readonly #nowSeconds: () => number;
  readonly #log: Log;
  #choice: SensorChoice | null = null;
  #file: TextFile | null = null;
  /** The sensor first chosen; later searches look for this one alone. */
  #settledId: string | null = null;
  #searching = false;
  #searchedSeconds = Number.NEGATIVE_INFINITY;

  constructor(sysRoot: string, configured: string | null, nowSeconds: () => number, log: Log) {
    this.#sysRoot = sysRoot;
    this.#configured = configured;
    this.#nowSeconds = nowSeconds;
    this.#log = log;
  }

  /** The choice, its reason and the rejected candidates; null until the first search has ended. */
  get choice(): SensorChoice | null {
    return this.#choice;
  }

  read(callback: ReadCallback): void {
    const file = this.#file;
    if (!file) {
      this.#searchIfDue();
      return callback(new Error(this.#choice?.reason ?? 'looking for a sensor'), 0);
    }
    file.read((error, text) => {
      if (error) {
        this.#searchIfDue();
        return callback(error, 0);
      }
      try {
        const celsius = parseMillidegrees(text);
        if (!isPossibleCelsius(celsius)) throw new ImplausibleReading(`${celsius} °C is not possible`);
        callback(null, celsius);
      } catch (problem) {
        callback(problem as Error, 0);
      }
    });
  }

  close(): void {
    this.#file?.close();
  }

  /** Searches now; resolves when the choice is made. Never rejects. */
  async search(): Promise<void> {
    if (this.#searching) return;
    this.#searching = true;
    this.#searchedSeconds = this.#nowSeconds();
    try {
      const choice = chooseSensor(await findSensors(this.#sysRoot), this.#settledId ?? this.#configured);
      const { chosen } = choice;
      // A sensor that went away keeps its first explanation, with what is there now.
      if (chosen && chosen.path !== this.#file?.path) {
        this.#file?.close();
        this.#file = new TextFile(chosen.path, 64);
        this.#log('info', 'temperature sensor chosen', { sensor: chosen.id, path: chosen.path, reason: choice.reason });
      } else if (!chosen && this.#choice === null) {
        this.#log('notice', 'no temperature sensor', { reason: choice.reason });
      }
      if (this.#settledId === null || this.#choice === null) this.#choice = choice;
      if (chosen) this.#settledId = chosen.id;
    } finally {
      this.#searching = false;
    }
  }

  #searchIfDue(): void {
    if (this.#nowSeconds() - this.#searchedSeconds >= SEARCH_EVERY_SECONDS) void this.search();
  }
}
