import type { Scan, Scanner } from '../observe/coverage.ts';
import type { CoverageEntry } from '../record/entries.ts';

type Kind = CoverageEntry['of'];

export interface LooksOptions {
  readonly sources: Readonly<Record<Kind, Scanner | null>>;
  /** Where each look begins: where the last one of the record ended, or where the run began; ms since the epoch. */
  readonly from: Readonly<Record<Kind, number>>;
}

/** Looks at what has been stored and collected, each from where the one before ended. Null from a source: it is asked again next time. */
export class Looks {
  readonly #sources: LooksOptions['sources'];
  readonly #from: Record<Kind, number>;
  #busy: Promise<unknown> = Promise.resolve();

  constructor({ from, sources }: LooksOptions) {
    this.#sources = sources;
    this.#from = { ...from };
  }

  /** Nothing before is of interest: the run begins only now. */
  beginAt(wallMs: number): void {
    for (const kind of ['stored', 'collected'] as const) this.#from[kind] = wallMs;
  }

  /** What there is up to then. One look at a time; none fails. */
  until(toMs: number): Promise<readonly Scan[]> {
    return this.#queued(() => this.#look(toMs));
  }

  /**
   * The clock was put back: what was stored before that is looked at up to the time it showed, and what comes now from the time it shows,
   * or the time that comes twice would be looked at once.
   */
  putBack(beforeMs: number, nowMs: number): Promise<readonly Scan[]> {
    return this.#queued(async () => {
      const looks = await this.#look(beforeMs);
      for (const kind of ['stored', 'collected'] as const) this.#from[kind] = Math.min(this.#from[kind], nowMs);
      return looks;
    });
  }

  #queued(work: () => Promise<readonly Scan[]>): Promise<readonly Scan[]> {
    const looks = this.#busy.then(work);
    this.#busy = looks;
    return looks;
  }

  async #look(toMs: number): Promise<readonly Scan[]> {
    const looks: Scan[] = [];
    for (const kind of ['stored', 'collected'] as const) {
      const from = this.#from[kind];
      // Where not scanned, the next look begins where the last one ended.
      const look = from < toMs ? await this.#sources[kind]?.(from, toMs).catch(() => null) : null;
      if (!look) continue;
      this.#from[kind] = look.to;
      looks.push(look);
    }
    return looks;
  }
}
