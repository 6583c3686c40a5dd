import type { Log } from '../core/ports.ts';
import { chooseSensor, findSensors, isPossibleCelsius, parseMillidegrees, type SensorChoice } from './sensors.ts';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';
import { OccasionalReader, TextFile } from './text-file.ts';

/** Interval between searches for a missing or failing sensor: a driver may be loaded later, and hwmon numbers may change. */
const SEARCH_EVERY_SECONDS = 10;

/**
 * Reads the temperature of the CPU or SoC. The sensor is selected once. If it fails, the metric is unavailable and never that of another
 * sensor, and the sensor is searched again by its name.
 */
export class TemperatureSource implements Source {
  readonly metric = 'temperature';
  readonly #sysRoot: string;
  readonly #configured: string | null;
  readonly #nowSeconds: () => number;
  readonly #log: Log;
  readonly #reader = new OccasionalReader();
  #choice: SensorChoice | null = null;
  #file: TextFile | null = null;
  /** The sensor selected first; later searches are only for this one. */
  #settledId: string | null = null;
  /** Whether the last read failed: the driver may have been unloaded, and another one may have the hwmon number in the path. */
  #unconfirmed = false;
  #searching: Promise<void> | null = null;
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
      const gone = this.#settledId && `${this.#settledId} is gone`;
      callback(new Error(gone ?? this.#choice?.reason ?? 'looking for a sensor'), 0);
      return;
    }
    file.read((error, text) => {
      if (error) {
        this.#unconfirmed = true;
        this.#searchIfDue();
        return callback(error, 0);
      }
      let celsius: number;
      try {
        celsius = parseMillidegrees(text);
        if (!isPossibleCelsius(celsius)) throw new ImplausibleReading(`${celsius} °C is not possible`);
      } catch (problem) {
        return callback(problem as Error, 0);
      }
      if (!this.#unconfirmed && !this.#searching) return callback(null, celsius);
      void this.search().then(() => {
        if (this.#file === file) callback(null, celsius);
        else callback(new Error('replaced by another sensor'), 0);
      });
    });
  }

  close(): void {
    this.#file?.close();
  }

  /** Searches for sensors; resolves after the selection. Never rejects. */
  search(): Promise<void> {
    this.#searching ??= this.#search().finally(() => {
      this.#searching = null;
    });
    return this.#searching;
  }

  async #search(): Promise<void> {
    this.#searchedSeconds = this.#nowSeconds();
    this.#unconfirmed = false;
    const found = await findSensors(this.#sysRoot, this.#reader);
    // The sensor still exists under its name and is kept, even if it fails and another sensor of the same name does not.
    if (this.#file && found.some(({ id, path }) => id === this.#settledId && path === this.#file?.path)) return;
    this.#file?.close();
    this.#file = null;
    const choice = chooseSensor(found, this.#settledId ?? this.#configured);
    const { chosen } = choice;
    // A sensor with a new path keeps the reason of its first selection.
    const first = this.#settledId === null ? null : this.#choice;
    if (chosen) {
      this.#file = new TextFile(chosen.path, 64);
      const reason = first?.reason ?? choice.reason;
      this.#log('info', 'temperature sensor selected', { sensor: chosen.id, path: chosen.path, reason });
      this.#choice = first ? { ...first, chosen } : choice;
      this.#settledId = chosen.id;
    } else if (first === null) {
      if (this.#choice === null) this.#log('notice', 'no temperature sensor', { reason: choice.reason });
      this.#choice = choice;
    }
  }

  #searchIfDue(): void {
    if (this.#nowSeconds() - this.#searchedSeconds >= SEARCH_EVERY_SECONDS) void this.search();
  }
}
