import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Findings } from './findings.ts';
import type { SoakedService } from './service.ts';

const STATUS_EVERY_MS = 10_000;

/** Slots sampled, by what /status counts between two readings. */
export class Sampling {
  readonly #service: SoakedService;
  readonly #hertz: number;
  #first: SamplingReading | null = null;
  #last: SamplingReading | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(service: SoakedService, hertz: number) {
    this.#service = service;
    this.#hertz = hertz;
  }

  get result(): Findings['sampling'] {
    const [first, last] = [this.#first, this.#last];
    if (first === null || last === null || first === last) return null;
    return { expected: this.#hertz * (last.at - first.at), taken: last.samples - first.samples, missed: last.missed - first.missed };
  }

  async begin(): Promise<void> {
    this.#first = await this.#read();
    // A service that ends before the last reading has told up to the one before.
    this.#timer = setInterval(() => void this.#look(), STATUS_EVERY_MS);
  }

  async end(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#look();
  }

  async #look(): Promise<void> {
    this.#last = (await this.#read()) ?? this.#last;
  }

  async #read(): Promise<SamplingReading | null> {
    const begun = performance.now();
    try {
      const { publish } = await this.#service.rest.json<StatusDocument>('/status');
      // Somewhere between asking and being answered it counted.
      return { at: (begun + performance.now()) / 2000, samples: publish.samples, missed: publish.missed };
    } catch {
      return null;
    }
  }
}

interface SamplingReading {
  readonly at: number;
  readonly samples: number;
  readonly missed: number;
}
