import type { MinuteEntry } from '../record/entries.ts';

/** Readings, which are a minute apart, from one release of memory to the next: looks at what is stored come as often. */
const RELEASE_READINGS = 60;

/** What the watcher itself takes. It has to be light: it runs for a week beside what it watches. */
export class OwnUse {
  readonly #release: () => unknown;
  #readings = 0;

  /** `release` gives memory back that the process can do without, now for the first time: before the sources' libraries are loaded. */
  constructor(release: () => unknown) {
    this.#release = release;
    release();
  }

  read(): MinuteEntry['watcher'] {
    // Right after its start most of its memory is what starting took.
    if (this.#readings === 0) this.#release();
    const { system, user } = process.cpuUsage();
    const use = { cpu_seconds: (user + system) / 1e6, resident_bytes: process.memoryUsage.rss() };
    this.#readings += 1;
    // Afterwards: a reading is of what was taken until then.
    if (this.#readings % RELEASE_READINGS === 0) this.#release();
    return use;
  }
}
