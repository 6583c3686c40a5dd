import type { ReliabilityEvidence } from '../../harness/engine/evidence.ts';
import type { PlacedRow } from './timeline.ts';

const ROUNDING = 1e-6;

/**
 * The statuses that the service published, by the growth of its own counters from row to row, against the sampling intervals between the
 * rows. A run of the service that ended may have taken samples after its last row: up to the next row they are neither received nor lost.
 */
export function countStatuses(rows: readonly PlacedRow[], configuredHertz: number) {
  let hertz = rows.find((row) => row.hertz !== null)?.hertz ?? configuredHertz;
  const total = { expected: 0, received: 0, notPublished: 0, unknown: 0 };
  /** Of the run of the service that responded last. */
  let run = { expected: 0, samples: 0, published: 0 };
  let response: PlacedRow | null = null;
  /** Intervals since that response, and of these the ones up to the row after it. */
  let since = 0;
  let untilNextRow = 0;

  const endRun = (): void => {
    // Counters of one row are not read at the same time: only over a whole run does the smaller one count.
    const received = Math.min(run.samples, run.published, run.expected);
    total.expected += run.expected;
    total.received += received;
    total.notPublished += Math.min(run.samples, run.expected) - received;
    run = { expected: 0, samples: 0, published: 0 };
  };
  const endStretch = (): void => {
    endRun();
    total.expected += since;
    total.unknown += response === null ? since : Math.min(since, untilNextRow);
  };

  /** By row, of the samples expected since the row before; null: not known. */
  const ratePercent = rows.map((row, i): number | null => {
    const before = rows[i - 1];
    hertz = row.hertz ?? hertz;
    if (before === undefined || row.fresh) {
      endStretch();
      response = row.answered ? row : null;
      [since, untilNextRow] = [0, 0];
      return null;
    }
    const intervals = hertz * Math.max(0, row.mono - before.mono);
    since += intervals;
    if (before === response) untilNextRow = intervals;
    const { answered, published, samples, started } = row;
    if (!answered || samples === null) return answered ? null : 0;

    const [last, expected, afterLast] = [response, since, untilNextRow];
    response = row;
    [since, untilNextRow] = [0, 0];
    if (last?.started === started && last.samples !== null) {
      const grown = Math.max(0, samples - last.samples);
      run.expected += expected;
      run.samples += grown;
      run.published += published === null ? grown : Math.max(0, published - (last.published ?? 0));
      return share(grown, expected);
    }
    endRun();
    const received = Math.min(samples, published ?? samples, expected);
    total.expected += expected;
    total.notPublished += Math.min(samples, expected) - received;
    // Without a response before, it is not known when this run of the service began.
    total.received += last === null ? 0 : received;
    total.unknown += last === null ? expected : Math.min(expected - received, afterLast);
    return last === null ? null : share(received, intervals);
  });
  endStretch();

  const expected = Math.floor(total.expected + ROUNDING);
  const received = Math.min(expected, Math.round(total.received));
  const unknown = Math.min(expected - received, Math.round(total.unknown));
  const notPublished = Math.min(expected - received - unknown, Math.round(total.notPublished));
  const reliability: ReliabilityEvidence = {
    by: expected > 0 ? 'collected' : null,
    reason: 'by the counters of the service',
    hertz,
    expected,
    received,
    unobserved: unknown,
    duplicates: 0,
    outOfOrder: 0,
    lost: { notSampled: expected - received - unknown - notPublished, notPublished, notDelivered: 0, unknown },
    byEvents: null,
  };
  /** Rows with a response but without a count of published statuses: the samples count there. */
  const rowsWithoutPublished = rows.filter(({ answered, published }) => answered && published === null).length;
  return { reliability, rowsWithoutPublished, ratePercent };
}

/** If two rows are not a whole number of periods apart, one sample more or less is between them. */
function share(samples: number, intervals: number): number | null {
  if (intervals <= 0) return null;
  return samples > intervals - 1 ? 100 : (100 * samples) / intervals;
}
