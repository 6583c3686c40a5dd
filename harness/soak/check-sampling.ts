import { type Check, checked } from './check.ts';
import { clock, count, LOSS_LIMIT } from './figures.ts';
import type { Findings, Stretch } from './findings.ts';

/** From here on what the host takes shows at 200 Hz: at 2 % of two processors one of them stands still for 40 ms of each second. */
const MUCH_STEAL_PERCENT = 2;
const MOST_STRETCHES = 20;

export function samplingCheck({ hertz, sampling, samplesGivenUp }: Findings): Check {
  const lost = sampling === null ? null : (100 * (sampling.expected - sampling.taken)) / sampling.expected;
  const stretches = sampling?.stretches ?? [];
  const underSteal = missedUnderSteal(stretches);
  const whereMissed = underSteal === 0 ? '' : `; ${count(underSteal)} were missed while the host of this machine took its processors`;
  return checked({
    check: 'sampling',
    title: 'Sampling',
    requirement: 'no slot lost beyond 1 %',
    formula: `(${hertz} Hz × time between two readings of /status − samples taken between them) ÷ expected × 100 ≤ 1 %`,
    measured: { label: 'slots without a sample', value: lost, unit: '%' },
    limit: LOSS_LIMIT,
    summary: sampling === null ? 'Unknown.' : `${count(sampling.taken)} of ${count(sampling.expected)} slots were sampled${whereMissed}.`,
    evidence: [
      { label: 'missed, as the service counts', value: sampling?.missed ?? null, unit: '', informative: true },
      {
        label: `of them while the host took more than ${MUCH_STEAL_PERCENT} % of the processors (steal)`,
        value: sampling?.host ? underSteal : null,
        unit: '',
        informative: true,
      },
      { label: 'taken by the host of this machine, on average', value: sampling?.host?.stealPercent ?? null, unit: '%', informative: true },
      { label: 'given up by the store, as it counts', value: samplesGivenUp, unit: '', informative: true },
    ],
    tables: tables(stretches),
    missing: ['/status did not answer'],
  });
}

/** Slots missed between readings in which the host of the machine took much of its processors' time. */
export function missedUnderSteal(stretches: readonly Stretch[]): number {
  return stretches.reduce((sum, { host, missed }) => sum + ((host?.stealPercent ?? 0) > MUCH_STEAL_PERCENT ? missed : 0), 0);
}

function tables(stretches: readonly Stretch[]): Check['tables'] {
  const worst = stretches
    .filter(({ missed }) => missed > 0)
    .sort((a, b) => b.missed - a.missed)
    .slice(0, MOST_STRETCHES)
    .sort((a, b) => a.fromSeconds - b.fromSeconds);
  if (worst.length === 0) return [];
  const columns = ['after', 'seconds', 'slots missed', 'taken by the host (%)', 'idle (%)'];
  const rows = worst.map(({ fromSeconds, host, missed, seconds }) => [
    clock(fromSeconds),
    tenth(seconds),
    missed,
    tenth(host?.stealPercent ?? null),
    tenth(host?.idlePercent ?? null),
  ]);
  return [{ title: `Where most slots were missed (${worst.length} of ${stretches.length} stretches)`, columns, rows }];
}

function tenth(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}
