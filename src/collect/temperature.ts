import type { Log } from '../core/ports.ts';
import {
  chooseSensor,
  findSensors,
  isNamed,
  isPossibleCelsius,
  MAX_WHOLE_DEGREES,
  parseValue,
  type SensorCandidate,
  type SensorChoice,
} from './sensors.ts';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';
import { OccasionalReader, TextFile } from './text-file.ts';

/** Interval between searches for a missing or failing sensor: a driver may be loaded later, and hwmon numbers may change. */
const SEARCH_EVERY_SECONDS = 10;

/** Name under which a sensor is found again: with its address, a second device of the same name is not mistaken for it. */
function lastingName({ id, name, address }: SensorCandidate): string {
  return address === null ? id : `${name}@${address}`;
}

/** One sensor that is read. */
class Thermometer {
  readonly file: TextFile;
  readonly lastingName: string;
  /** Whether the last read failed: the driver may have been unloaded, and another one may have the hwmon number in the path. */
  isUnconfirmed = false;
  #unitsPerDegree: number | null;

  constructor(sensor: SensorCandidate) {
    this.file = new TextFile(sensor.path, 64);
    this.lastingName = lastingName(sensor);
    this.#unitsPerDegree = sensor.unitsPerDegree;
  }

  isOf(sensor: SensorCandidate): boolean {
    return this.file.path === sensor.path && this.lastingName === lastingName(sensor);
  }

  /** A known unit is kept: a sensor in millidegrees that falls to 0.065 °C is not at 65 °C. */
  learnUnit({ unitsPerDegree }: SensorCandidate): void {
    this.#unitsPerDegree ??= unitsPerDegree;
  }

  /** In °C. Throws for text that is not a number, and for impossible values. */
  parse(text: string): number {
    const value = parseValue(text);
    // Either the unit was mistaken or the value is: the next search decides again.
    if (this.#unitsPerDegree === 1 && Math.abs(value) > MAX_WHOLE_DEGREES) this.#unitsPerDegree = null;
    if (this.#unitsPerDegree === null) throw new ImplausibleReading('whole degrees or millidegrees: not known yet');
    const celsius = value / this.#unitsPerDegree;
    if (!isPossibleCelsius(celsius)) throw new ImplausibleReading(`${celsius} °C is not possible`);
    return celsius;
  }
}

/**
 * Reads the temperature of the CPU or SoC. The sensor is selected once. If it fails, the metric is unavailable and never that of another
 * sensor, and the sensor is searched again by its name. If each core has a sensor of its own, the temperature is the hottest of those that
 * can be read.
 */
export class TemperatureSource implements Source {
  readonly metric = 'temperature';
  readonly #sysRoot: string;
  readonly #configured: string | null;
  readonly #nowSeconds: () => number;
  readonly #log: Log;
  readonly #reader = new OccasionalReader();
  #choice: SensorChoice | null = null;
  #thermometers: readonly Thermometer[] = [];
  /** Lasting names of the sensors selected first; later searches are only for these. */
  #settled: readonly string[] | null = null;
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
    const thermometers = this.#thermometers;
    if (thermometers.length === 0) {
      this.#searchIfDue();
      const gone = this.#settled && `${this.#choice?.chosen?.id} is gone`;
      callback(new Error(gone ?? this.#choice?.reason ?? 'looking for a sensor'), 0);
      return;
    }
    let waiting = thermometers.length;
    let hottest = Number.NEGATIVE_INFINITY;
    let problem: Error | null = null;
    let confirm = false;
    for (const thermometer of thermometers) {
      thermometer.file.read((error, text) => {
        if (error) {
          thermometer.isUnconfirmed = true;
          problem = error;
        } else {
          try {
            hottest = Math.max(hottest, thermometer.parse(text));
            confirm ||= thermometer.isUnconfirmed;
          } catch (unusable) {
            problem = unusable as Error;
          }
        }
        waiting -= 1;
        if (waiting > 0) return;
        if (problem !== null || thermometers.length < (this.#settled?.length ?? 0)) this.#searchIfDue();
        if (hottest === Number.NEGATIVE_INFINITY) return callback(problem, 0);
        if (!confirm && !this.#searching) return callback(null, hottest);
        void this.search().then(() => {
          if (this.#thermometers === thermometers) callback(null, hottest);
          else callback(new Error('replaced by another sensor'), 0);
        });
      });
    }
  }

  close(): void {
    for (const { file } of this.#thermometers) file.close();
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
    for (const thermometer of this.#thermometers) thermometer.isUnconfirmed = false;
    const found = await findSensors(this.#sysRoot, this.#reader);
    if (this.#settled !== null) return this.#follow(this.#settled, found);
    const choice = chooseSensor(found, this.#configured);
    const { chosen, members, reason } = choice;
    if (chosen) {
      this.#settled = members.map(lastingName);
      this.#thermometers = members.map((sensor) => new Thermometer(sensor));
      this.#log('info', 'temperature sensor selected', { sensor: chosen.id, path: chosen.path, reason });
    } else if (this.#choice === null) {
      this.#log('notice', 'no temperature sensor', { reason });
    }
    this.#choice = choice;
  }

  /** Finds the selected sensors again, where they are now. */
  #follow(settled: readonly string[], found: readonly SensorCandidate[]): void {
    const before = this.#thermometers;
    const members = settled.flatMap((name) => {
      const named = found.filter((sensor) => isNamed(sensor, name));
      // A sensor that still exists is kept, even if it fails and another one of its name does not.
      const kept = named.find((sensor) => before.some((thermometer) => thermometer.isOf(sensor)));
      return kept ?? named.find(({ problem }) => problem === null) ?? named[0] ?? [];
    });
    const after = members.map((sensor) => {
      const kept = before.find((thermometer) => thermometer.isOf(sensor));
      kept?.learnUnit(sensor);
      return kept ?? new Thermometer(sensor);
    });
    if (after.length === before.length && after.every((thermometer) => before.includes(thermometer))) return;
    for (const thermometer of before) if (!after.includes(thermometer)) thermometer.file.close();
    this.#thermometers = after;
    const [first] = members;
    if (!first || !this.#choice) return;
    // A sensor with a new path keeps the reason of its first selection.
    const chosen = members.find(({ name }) => name === this.#choice?.chosen?.name) ?? first;
    this.#choice = { ...this.#choice, chosen };
    this.#log('info', 'temperature sensor selected', { sensor: chosen.id, path: chosen.path, reason: this.#choice.reason });
  }

  #searchIfDue(): void {
    if (this.#nowSeconds() - this.#searchedSeconds >= SEARCH_EVERY_SECONDS) void this.search();
  }
}
