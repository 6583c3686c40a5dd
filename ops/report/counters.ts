import type { ReliabilityEvidence } from '../../harness/engine/evidence.ts';
import type { PlacedRow } from './timeline.ts';

export interface Counted {
  readonly reliability: ReliabilityEvidence;
  /** Rows with an answer that do not show what was published: there the samples taken count. */
  readonly rowsWithoutPublished: number;
  /** Of the expected samples, in percent, up to each row from the one before; null: not known. In the order of the rows. */
  readonly ratePercent: readonly (number | null)[];
}

const ROUNDING = 1e-6;

/**
 * What the service itself counted, as its samples and the statuses it published grew from row to row. A run of it that ended may have taken
 * samples after its last row: as many slots as there were until the next row are not known to be lost.
 */
export function countStatuses(rows: readonly PlacedRow[], configuredHertz: number): Counted {
  const counts = new Counts(rows.find(({ hertz }) => hertz !== null)?.hertz ?? configuredHertz);
  const ratePercent = rows.map((row, i) => counts.add(row, rows[i - 1]));
  return { reliability: counts.evidence(), rowsWithoutPublished: counts.rowsWithoutPublished, ratePercent };
}

class Counts {
  rowsWithoutPublished = 0;
  #hertz: number;
  #expected = 0;
  #received = 0;
  #notPublished = 0;
  #unheard = 0;
  /** The last answer of this stretch, the slots since, and of these the ones up to the next row. */
  #answer: PlacedRow | null = null;
  #pending = 0;
  #pendingFirst = 0;
  /** Of the run of the service that the last answer is of: what the two row's counters at its ends bound. */
  #run = { expected: 0, grown: 0, published: 0 };

  constructor(hertz: number) {
    this.#hertz = hertz;
  }

  add(row: PlacedRow, before: PlacedRow | undefined): number | null {
    this.#hertz = row.hertz ?? this.#hertz;
    if (row.answered && row.published === null) this.rowsWithoutPublished += 1;
    if (before === undefined || row.fresh) {
      this.#endStretch();
      this.#answer = row.answered ? row : null;
      return null;
    }
    const slots = this.#hertz * Math.max(0, row.mono - before.mono);
    this.#pending += slots;
    if (before === this.#answer) this.#pendingFirst = slots;
    if (!row.answered || row.samples === null) return row.answered ? null : 0;
    return this.#answered(row, row.samples, slots);
  }

  evidence(): ReliabilityEvidence {
    this.#endStretch();
    const expected = Math.floor(this.#expected + ROUNDING);
    const received = Math.min(expected, Math.round(this.#received));
    const unheard = Math.min(expected - received, Math.round(this.#unheard));
    const notPublished = Math.min(expected - received - unheard, Math.round(this.#notPublished));
    return {
      by: expected > 0 ? 'collected' : null,
      instead: 'as the service counted them',
      hertz: this.#hertz,
      expected,
      received,
      unheard,
      duplicates: 0,
      outOfOrder: 0,
      lost: { notSampled: expected - received - unheard - notPublished, notPublished, notDelivered: 0, unknown: unheard },
      byEvents: null,
    };
  }

  #answered(row: PlacedRow, samples: number, slots: number): number | null {
    const before = this.#answer;
    const pending = this.#pending;
    const first = this.#pendingFirst;
    this.#answer = row;
    this.#pending = 0;
    this.#pendingFirst = 0;
    if (before?.started === row.started && before.samples !== null) {
      const grown = Math.max(0, samples - before.samples);
      this.#run.expected += pending;
      this.#run.grown += grown;
      // The counters of one row are not read at one moment: only over a whole run does the smaller one count.
      this.#run.published += row.published === null ? grown : Math.max(0, row.published - (before.published ?? 0));
      return share(grown, pending);
    }
    this.#endRun();
    const got = Math.min(samples, row.published ?? samples, pending);
    this.#notPublished += Math.min(samples, pending) - got;
    this.#expected += pending;
    // Without an answer before, it is not known when this run of the service began.
    this.#received += before === null ? 0 : got;
    this.#unheard += before === null ? pending : Math.min(pending - got, first);
    return before === null ? null : share(got, slots);
  }

  #endRun(): void {
    const { expected, grown, published } = this.#run;
    const received = Math.min(grown, published, expected);
    this.#expected += expected;
    this.#received += received;
    this.#notPublished += Math.min(grown, expected) - received;
    this.#run = { expected: 0, grown: 0, published: 0 };
  }

  #endStretch(): void {
    this.#endRun();
    this.#expected += this.#pending;
    this.#unheard += this.#answer === null ? this.#pending : Math.min(this.#pending, this.#pendingFirst);
    this.#answer = null;
    this.#pending = 0;
    this.#pendingFirst = 0;
  }
}

/** Where two rows are not a whole number of periods apart, one more or one less falls between them. */
function share(grown: number, slots: number): number | null {
  if (slots <= 0) return null;
  return grown > slots - 1 ? 100 : (100 * grown) / slots;
}
