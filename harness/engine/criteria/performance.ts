import { formatDuration } from '../../../src/core/time/duration.ts';
import type { Evidence } from '../evidence.ts';
import { rounded } from '../format.ts';
import { type Judgement, marginOf } from '../judgement.ts';

const LIMIT_PERCENT = 10;
/** The share of the time observed awake that readings must cover. */
const LEAST_SHARE = 0.9;

/** Passes if the service uses less than 10 % of one core on average. */
export function judgePerformance({ cpu, observed }: Evidence): Judgement {
  const percent = cpu.awakeSeconds > 0 ? (cpu.cpuSeconds / cpu.awakeSeconds) * 100 : null;
  const observedSeconds = observed.reduce((sum, { awakeSeconds }) => sum + awakeSeconds, 0);
  const missing: string[] = [];
  if (percent === null) missing.push('two readings of the CPU time of one run of the service');
  else if (cpu.awakeSeconds < observedSeconds * LEAST_SHARE) {
    missing.push(
      `readings cover ${formatDuration(cpu.awakeSeconds, 'h')} of ${formatDuration(observedSeconds, 'h')}, at least ${LEAST_SHARE * 100} % are needed`,
    );
  }
  const limit = { comparison: '<', value: LIMIT_PERCENT, unit: '%' } as const;
  const verdict = (percent ?? 0) >= LIMIT_PERCENT ? 'FAIL' : missing.length > 0 ? 'INCOMPLETE' : 'PASS';
  return {
    criterion: 'performance',
    title: 'Performance',
    verdict,
    requirement: 'average CPU usage below 10 %',
    formula:
      'CPU time of the service ÷ CLOCK_MONOTONIC seconds × 100 < 10 % of one core, over the intervals that readings of one run of it cover (from its start, if that was observed)',
    measured: { label: 'CPU of the service', value: percent, unit: '%' },
    limit,
    margin: percent === null ? null : marginOf(percent, limit),
    summary:
      percent === null ? 'The CPU time of the service is not known.' : `${rounded(percent, 3)} % of one core on average (${cpu.from}).`,
    evidence: [
      { label: 'CPU time', value: cpu.cpuSeconds, unit: 's' },
      { label: 'over', value: cpu.awakeSeconds, unit: 's' },
      { label: 'observed awake', value: observedSeconds, unit: 's' },
      { label: 'CPU of the machine, mean', value: cpu.hostMeanPercent, unit: '%', informative: true },
    ],
    tables: [],
    missing,
  };
}
