import { judge } from '../engine/judge.ts';
import { type Judgement, type TestVerdict, worst } from '../engine/judgement.ts';
import type { RecordEntry } from '../record/entries.ts';
import type { EvidenceBuilder } from '../record/evidence.ts';
import type { RecordWriter } from '../record/writer.ts';

/** Judging takes at most this share of the time: its result is only displayed. */
const JUDGING_SHARE = 1 / 4000;
/** After a restart or a change of the open alerts: the display should not contradict itself for long. */
const UPDATE_SHARE = 1 / 200;

/** Writes entries to the record, and judges them as they come. */
export class Recorder {
  readonly #builder: EvidenceBuilder;
  readonly #monotonicSeconds: () => number;
  #writer: RecordWriter | null = null;
  #judgements: readonly Judgement[] = [];
  #judged = { atSeconds: Number.NEGATIVE_INFINITY, tookSeconds: 0 };
  #hasUpdates = false;

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
    return problem === null ? null : `${problem} (${pending} entries pending)`;
  }

  /** Seconds in which the run was observed, as of the last minute. */
  get observedSeconds(): number {
    return this.#builder.watchedSeconds;
  }

  /** As of the last judging. */
  get judgements(): readonly Judgement[] {
    return this.#judgements;
  }

  /** Throws RecordError if the record was removed. */
  readonly write = (entries: readonly RecordEntry[]): void => {
    this.#writer?.append(...entries);
    this.take(entries);
    this.#hasUpdates ||= entries.some(({ type }) => type === 'open' || type === 'service');
    const now = this.#monotonicSeconds();
    const { atSeconds, tookSeconds } = this.#judged;
    const isDue = now - atSeconds >= tookSeconds / (this.#hasUpdates ? UPDATE_SHARE : JUDGING_SHARE);
    // The first minute has no length, only the counters at the begin.
    if (!isDue || this.observedSeconds === 0 || !entries.some(({ type }) => type === 'minute')) return;
    this.#judgements = judge(this.#builder.evidence());
    const after = this.#monotonicSeconds();
    this.#judged = { atSeconds: after, tookSeconds: after - now };
    this.#hasUpdates = false;
  };

  /** Throws RecordError if the record was removed; writes pending entries. */
  check(): void {
    this.#writer?.flush();
  }

  /** Judges entries that are in the record already. */
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
