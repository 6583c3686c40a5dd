import { judge } from '../engine/judge.ts';
import { type Judgement, type TestVerdict, worst } from '../engine/judgement.ts';
import type { RecordEntry } from '../record/entries.ts';
import type { EvidenceBuilder } from '../record/evidence.ts';
import type { RecordWriter } from '../record/writer.ts';

/** Judging takes at most this share of the time: it is for the watcher's own display alone. */
const JUDGING_SHARE = 1 / 4000;
/** After a restart, or where other alerts are open: what is displayed should not contradict itself for long. */
const NEWS_SHARE = 1 / 200;

/** Entries on their way to the record, and what they come to so far. */
export class Recorder {
  readonly #builder: EvidenceBuilder;
  readonly #monotonicSeconds: () => number;
  #writer: RecordWriter | null = null;
  #judgements: readonly Judgement[] = [];
  #judged = { atSeconds: Number.NEGATIVE_INFINITY, tookSeconds: 0 };
  #hasNews = false;

  constructor(builder: EvidenceBuilder, monotonicSeconds: () => number) {
    this.#builder = builder;
    this.#monotonicSeconds = monotonicSeconds;
  }

  begin(writer: RecordWriter): void {
    this.#writer = writer;
  }

  get entries(): number {
    return this.#writer?.entries ?? 0;
  }

  get head(): string {
    return this.#writer?.head ?? '';
  }

  get problem(): string | null {
    const { problem = null, pending = 0 } = this.#writer ?? {};
    return problem === null ? null : `${problem} (${pending} entries wait)`;
  }

  /** Seconds in which the run was watched, as of the last minute. */
  get watchedSeconds(): number {
    return this.#builder.watchedSeconds;
  }

  /** As of the last time that it was worth the while. */
  get judgements(): readonly Judgement[] {
    return this.#judgements;
  }

  /** Throws RecordError when the record is not there any more. */
  readonly write = (entries: readonly RecordEntry[]): void => {
    this.#writer?.append(...entries);
    this.take(entries);
    this.#hasNews ||= entries.some(({ type }) => type === 'open' || type === 'service');
    const now = this.#monotonicSeconds();
    const { atSeconds, tookSeconds } = this.#judged;
    const isDue = now - atSeconds >= tookSeconds / (this.#hasNews ? NEWS_SHARE : JUDGING_SHARE);
    // The first minute is of no length: it only has the counters at the begin.
    if (!isDue || this.watchedSeconds === 0 || !entries.some(({ type }) => type === 'minute')) return;
    this.#judgements = judge(this.#builder.evidence());
    const after = this.#monotonicSeconds();
    this.#judged = { atSeconds: after, tookSeconds: after - now };
    this.#hasNews = false;
  };

  /** Throws RecordError when there is no record any more; writes what waits. */
  check(): void {
    this.#writer?.flush();
  }

  /** What is in the record already. */
  take(entries: readonly RecordEntry[]): void {
    for (const entry of entries) this.#builder.add(entry);
  }

  verdict(): TestVerdict {
    return worst(judge(this.#builder.evidence()).map(({ verdict }) => verdict));
  }

  close(): void {
    this.#writer?.flush();
    this.#writer?.close();
  }
}
