import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import { type JobArguments, UsageError } from '../lib/job.ts';

export interface Period {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
}

const DEFAULT_DAYS = 7;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** The period of --from, --to and --days; by default the last seven days. */
export function periodOf(options: JobArguments['options'], nowMs: number): Period {
  const { days: daysText, from, to } = options as Readonly<Record<string, string | undefined>>;
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === undefined || (TIME.test(value) && !Number.isNaN(Date.parse(value)))) continue;
    throw new UsageError(`--${name} is "${value}"; allowed: a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31 (UTC)`);
  }
  const days = Number(daysText ?? DEFAULT_DAYS);
  if (!(days > 0 && days <= 3650)) throw new UsageError(`--days is "${daysText}"; allowed: a number above 0 up to 3650`);
  if (from !== undefined && to !== undefined && daysText !== undefined) {
    throw new UsageError('--from, --to and --days are given; two of them define the period');
  }
  // Without --days, a period with --from lasts until now.
  const defaultTo = from !== undefined && daysText !== undefined ? Date.parse(from) + days * DAY_MS : nowMs;
  const toMs = to === undefined ? defaultTo : Date.parse(to);
  const period = { fromMs: from === undefined ? toMs - days * DAY_MS : Date.parse(from), toMs: Math.min(toMs, nowMs) };
  if (period.fromMs < period.toMs) return period;
  const [begin, end] = [isoUtc(period.fromMs), isoUtc(period.toMs)];
  throw new UsageError(`the period would begin at ${begin} and end at ${end}; it must begin before it ends, and before now`);
}
