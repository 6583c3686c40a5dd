import { memoryVariance } from '../engine/memory-variance.ts';
import { clock } from './figures.ts';
import { memoryRule } from './findings.ts';
import type { Meter } from './meter.ts';
import type { Poller } from './poller.ts';
import type { StoredCount } from './stored.ts';
import type { Way, Window } from './way.ts';

export interface SoFar {
  readonly meter: Meter;
  readonly stored: StoredCount;
  readonly poller: Poller;
  readonly ways: Readonly<Record<'topic' | 'events' | 'peer', Way>>;
  readonly window: Window;
  readonly turns: number;
  readonly maxBytes: number;
}

export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const ON_TERMINAL_SECONDS = 1;
const ELSEWHERE_SECONDS = 30;
/** Statuses on their way are no loss yet. */
const ON_THE_WAY_SECONDS = 0.05;

/** Tells how it stands: on a terminal in one line that is written anew, elsewhere a line now and then. */
export class Progress {
  readonly #stream: ProgressStream;
  readonly #hertz: number;
  #shownSeconds = Number.NEGATIVE_INFINITY;
  #isOpen = false;

  constructor(stream: ProgressStream, hertz: number) {
    this.#stream = stream;
    this.#hertz = hertz;
  }

  say(text: string): void {
    this.#stream.write(`${this.#isOpen ? '\n' : ''}soak: ${text}\n`);
    this.#isOpen = false;
  }

  show(elapsedSeconds: number, plannedSeconds: number, soFar: SoFar): void {
    const { isTTY } = this.#stream;
    if (elapsedSeconds - this.#shownSeconds < (isTTY ? ON_TERMINAL_SECONDS : ELSEWHERE_SECONDS)) return;
    this.#shownSeconds = elapsedSeconds;
    const line = this.#line(elapsedSeconds, plannedSeconds, soFar);
    this.#stream.write(isTTY ? `\r\x1b[K${line}` : `soak: ${line}\n`);
    this.#isOpen = isTTY === true;
  }

  /** Ends the line that is being written anew. */
  end(): void {
    if (this.#isOpen) this.#stream.write('\n');
    this.#isOpen = false;
  }

  #line(elapsed: number, planned: number, { maxBytes, meter, poller, stored, turns, ways, window }: SoFar): string {
    const share = (count: number, seconds: number): string =>
      seconds <= 0 ? '–' : `${Math.min(100, (100 * count) / (seconds * this.#hertz)).toFixed(2)} %`;
    const live = elapsed - ON_THE_WAY_SECONDS;
    const { at, databaseBytes, files, residentBytes } = meter.readings;
    const variance = memoryVariance({ at, bytes: residentBytes, starts: [0], ...memoryRule(planned) });
    const results = poller.results();
    const p99 = Math.max(...results.map(({ p99Ms }) => p99Ms ?? 0));
    const failed = results.reduce((sum, path) => sum + path.failed, 0);
    return [
      `${clock(elapsed)} elapsed, ${clock(planned - elapsed)} left`,
      ...(ways.topic.heard > 0 ? [`topic ${share(ways.topic.count, live)}`] : []),
      `events ${share(ways.events.count, live)}`,
      `stored ${share(stored.count, (stored.countedToMs - window.fromMs) / 1000)}`,
      ...(ways.peer.heard > 0 ? [`peer ${share(ways.peer.count, live)}`] : []),
      `memory ${((residentBytes.at(-1) ?? 0) / 1e6).toFixed(0)} MB${variance === null ? '' : `, spread ${variance.percent.toFixed(1)} %`}`,
      `files ${files.at(-1) ?? '–'}`,
      `database ${((databaseBytes.at(-1) ?? 0) / 1e6).toFixed(1)} of ${maxBytes / 1e6} MB`,
      `alerts ${ways.events.episodeIds.length} (${turns} causes)`,
      `REST p99 ${p99.toFixed(0)} ms${failed > 0 ? `, ${failed} failed` : ''}`,
    ].join(' | ');
  }
}
