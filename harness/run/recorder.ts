import * as fs from 'node:fs';
import { join } from 'node:path';
import { formatDuration } from '../../src/core/time/duration.ts';
import { judge } from '../engine/judge.ts';
import { type Judgement, type TestVerdict, worst } from '../engine/judgement.ts';
import { type BeginEntry, type Clocked, RECORD_FILE, type RecordEntry } from '../record/entries.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { type Opened, RecordWriter } from '../record/writer.ts';
import { EXIT, Refusal } from './command.ts';
import { ResumeState } from './resume-state.ts';

/** Judging takes at most this share of the time, because its result is only displayed. */
const JUDGING_SHARE = 1 / 4000;
/** Used after a restart or a change of the open alerts, so that the display is not inconsistent for long. */
const UPDATE_SHARE = 1 / 200;

/** Opens or creates the record of a run, writes its entries, and judges them as they arrive. */
export class Recorder {
  readonly #monotonicSeconds: () => number;
  readonly #evidence = new EvidenceBuilder();
  #writer: RecordWriter | null = null;
  #judgements: readonly Judgement[] = [];
  #judged = { atSeconds: Number.NEGATIVE_INFINITY, tookSeconds: 0 };
  #hasUpdates = false;

  constructor(monotonicSeconds: () => number) {
    this.#monotonicSeconds = monotonicSeconds;
  }

  /**
   * Opens the unfinished run of a folder, or returns null if there is none. If `durationSeconds` is null, the duration in the record
   * applies. Throws Refusal if there is a run that cannot be resumed, and RecordError.
   */
  open(folder: string, durationSeconds: number | null, clocks: () => Clocked): (Opened & { readonly state: ResumeState }) | null {
    const file = join(folder, RECORD_FILE);
    if (!fs.existsSync(file) || fs.statSync(file).size === 0) return null;
    const state = new ResumeState();
    const opened = RecordWriter.open(folder, clocks, (entry) => {
      state.add(entry);
      this.#evidence.add(entry);
    });
    const planned = formatDuration(state.plannedSeconds, 'h');
    let problem: string | null = null;
    if (state.isComplete)
      problem = `a run of ${planned} that is complete. Choose another folder with --out, or write its report again with: edge-health harness report ${folder}`;
    else if (durationSeconds !== null && durationSeconds !== state.plannedSeconds)
      problem = `an unfinished run of ${planned}, not of ${formatDuration(durationSeconds, 'h')}. Resume it without --duration, or choose another folder with --out`;
    if (problem !== null) {
      opened.writer.close();
      throw new Refusal(EXIT.usage, `${folder} holds ${problem}`);
    }
    this.#writer = opened.writer;
    return { ...opened, state };
  }

  /** Creates a record in the folder. Throws RecordError. */
  create(folder: string, begin: BeginEntry): void {
    this.#writer = RecordWriter.create(folder, begin);
    this.#evidence.add(begin);
  }

  get entries(): number {
    return this.#writer?.entries ?? 0;
  }

  get head(): string {
    return this.#writer?.head ?? '';
  }

  /** Why entries are not written; null if they are. */
  get problem(): string | null {
    const { problem = null, pending = 0 } = this.#writer ?? {};
    return problem === null ? null : `${problem} (${pending} entries pending)`;
  }

  /** Seconds for which the run was observed, as of the last minute. */
  get observedSeconds(): number {
    return this.#evidence.observedSeconds;
  }

  /** Judgements as of the last evaluation. */
  get judgements(): readonly Judgement[] {
    return this.#judgements;
  }

  /** Throws RecordError if the record was removed. */
  write(entries: readonly RecordEntry[]): void {
    this.#writer?.append(...entries);
    for (const entry of entries) this.#evidence.add(entry);
    this.#hasUpdates ||= entries.some(({ type }) => type === 'open' || type === 'service');
    const now = this.#monotonicSeconds();
    const { atSeconds, tookSeconds } = this.#judged;
    const isDue = now - atSeconds >= tookSeconds / (this.#hasUpdates ? UPDATE_SHARE : JUDGING_SHARE);
    // The first minute has no length, and only the counters at the start.
    if (!isDue || this.observedSeconds === 0 || !entries.some(({ type }) => type === 'minute')) return;
    this.#judgements = judge(this.#evidence.evidence());
    const after = this.#monotonicSeconds();
    this.#judged = { atSeconds: after, tookSeconds: after - now };
    this.#hasUpdates = false;
  }

  /** Writes pending entries. Throws RecordError if the record was removed. */
  check(): void {
    this.#writer?.flush();
  }

  /** The verdict on the entries so far. */
  verdict(): TestVerdict {
    return worst(judge(this.#evidence.evidence()).map(({ verdict }) => verdict));
  }

  close(): void {
    this.#writer?.flush();
    this.#writer?.close();
  }
}
