import type { ReliabilityEvidence } from '../../harness/engine/evidence.ts';
import type { PlacedRow } from './timeline.ts';

const ROUNDING = 1e-6;

/**
 * Counts the statuses that the service published, from the growth of its own counters between rows, against the sampling
 * intervals between the rows. A service run that ended may have taken samples after its last row: those up to the next row count
 * neither as received nor as lost.
 */
export function countStatuses(rows: readonly PlacedRow[], configuredHertz: number) {
  let hertz = rows.find((row) => row.hertz !== null)?.hertz ?? configuredHertz;
  const total = { expected: 0, received: 0, notPublished: 0, unknown: 0 };
  /** Totals of the service run that responded last. */
  let run = { expected: 0, samples: 0, published: 0 };
  let response: PlacedRow | null = null;
  /** Intervals since that response, and the part of them up to the first row after it. */
  let since = 0;
  let untilNextRow = 0;

  const endRun = (): void => {
    // Counters of one row are not read at the same instant, so the smaller one counts only over a whole run.
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

  /** By row, in percent of the samples expected since the previous row; null if unknown. */
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
    // Without an earlier response, the start of this service run is unknown.
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
  /** Rows with a response but without a count of published statuses; there, the samples are counted instead. */
  const rowsWithoutPublished = rows.filter(({ answered, published }) => answered && published === null).length;
  return { reliability, rowsWithoutPublished, ratePercent };
}

/** If two rows are not a whole number of periods apart, there may be one sample more or less between them. */
function share(samples: number, intervals: number): number | null {
  if (intervals <= 0) return null;
  return samples > intervals - 1 ? 100 : (100 * samples) / intervals;
}
