import type { Scan, Scanner } from '../observe/coverage.ts';

const KINDS = ['stored', 'collected'] as const;
type Kind = (typeof KINDS)[number];

export interface ScansOptions {
  readonly scanners: Readonly<Record<Kind, Scanner | null>>;
  /** Where the first scan begins: at the end of the last one in the record, or at the begin of the run; ms since the epoch. */
  readonly from: Readonly<Record<Kind, number>>;
}

/** Scans stored samples and collected rows, each from the end of the previous scan. What cannot be scanned is left to the next one. */
export class Scans {
  readonly #scanners: ScansOptions['scanners'];
  readonly #from: Record<Kind, number>;
  /** Scans run one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ from, scanners }: ScansOptions) {
    this.#scanners = scanners;
    this.#from = { ...from };
  }

  /** The run begins now: samples before it are not scanned. */
  beginAt(wallMs: number): void {
    for (const kind of KINDS) this.#from[kind] = wallMs;
  }

  /** Never rejects. */
  scanUntil(toMs: number): Promise<readonly Scan[]> {
    return this.#enqueue(() => this.#scan(toMs));
  }

  /**
   * The wall clock was set back: scans what was stored until then up to the former time. The next scan begins at the present one, so that
   * the hour that occurs twice is scanned twice.
   */
  clockSetBack(formerMs: number, nowMs: number): Promise<readonly Scan[]> {
    return this.#enqueue(async () => {
      const scans = await this.#scan(formerMs);
      for (const kind of KINDS) this.#from[kind] = Math.min(this.#from[kind], nowMs);
      return scans;
    });
  }

  #enqueue(work: () => Promise<readonly Scan[]>): Promise<readonly Scan[]> {
    const scans = this.#last.then(work);
    this.#last = scans;
    return scans;
  }

  async #scan(toMs: number): Promise<readonly Scan[]> {
    const scans: Scan[] = [];
    for (const kind of KINDS) {
      const from = this.#from[kind];
      // What cannot be read now is scanned next time; until then it counts as not scanned.
      const scan = from < toMs ? await this.#scanners[kind]?.(from, toMs).catch(() => null) : null;
      if (!scan) continue;
      this.#from[kind] = scan.to;
      scans.push(scan);
    }
    return scans;
  }
}
