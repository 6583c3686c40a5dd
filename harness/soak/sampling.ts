import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Findings, Stretch } from './findings.ts';
import { type HostTime, readHostTime, sharesOf } from './host-time.ts';
import type { SoakedService } from './service.ts';

const STATUS_EVERY_MS = 10_000;

export interface SamplingReading {
  /** Seconds, by performance.now. */
  readonly at: number;
  readonly samples: number;
  readonly missed: number;
  readonly host: HostTime | null;
}

/** Slots sampled, by what /status counts between two readings, and what the machine's processors did meanwhile. */
export class Sampling {
  readonly #service: SoakedService;
  readonly #hertz: number;
  readonly #readings: SamplingReading[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(service: SoakedService, hertz: number) {
    this.#service = service;
    this.#hertz = hertz;
  }

  get result(): Findings['sampling'] {
    return samplingOf(this.#readings, this.#hertz);
  }

  async begin(): Promise<void> {
    await this.#look();
    // A service that ends before the last reading has told up to the one before.
    this.#timer = setInterval(() => void this.#look(), STATUS_EVERY_MS);
  }

  async end(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#look();
  }

  async #look(): Promise<void> {
    const begun = performance.now();
    try {
      const { publish } = await this.#service.rest.json<StatusDocument>('/status');
      // Somewhere between asking and being answered it counted.
      const at = (begun + performance.now()) / 2000;
      this.#readings.push({ at, samples: publish.samples, missed: publish.missed, host: readHostTime() });
    } catch {
      // The next one counts what this one would have.
    }
  }
}

/** Null: there are no two readings. */
export function samplingOf(readings: readonly SamplingReading[], hertz: number): Findings['sampling'] {
  const [first, last] = [readings[0], readings.at(-1)];
  if (first === undefined || last === undefined || first === last) return null;
  return {
    expected: hertz * (last.at - first.at),
    taken: last.samples - first.samples,
    missed: last.missed - first.missed,
    host: sharesOf(first.host, last.host),
    stretches: readings.slice(1).map((reading, i): Stretch => {
      const before = readings[i] as SamplingReading;
      return {
        fromSeconds: before.at - first.at,
        seconds: reading.at - before.at,
        missed: reading.missed - before.missed,
        host: sharesOf(before.host, reading.host),
      };
    }),
  };
}
