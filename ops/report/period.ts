import { DAY_MS, isoUtc } from '../../src/core/time.ts';
import type { JobArguments } from '../lib/job.ts';

export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

const DEFAULT_DAYS = 7;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** The period that --from, --to and --days mean together: by default the last seven days. A text says what is wrong with them. */
export function periodOf(options: JobArguments['options'], nowMs: number): Period | string {
  const text = (name: string): string | undefined => options[name] as string | undefined;
  for (const name of ['from', 'to']) {
    const value = text(name);
    if (value !== undefined && (!TIME.test(value) || Number.isNaN(Date.parse(value)))) {
      return `--${name} is "${value}"; allowed: a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31 (UTC)`;
    }
  }
  const days = Number(text('days') ?? DEFAULT_DAYS);
  if (!(days > 0 && days <= 3650)) return `--days is "${text('days')}"; allowed: a number above 0 up to 3650`;
  if (text('from') !== undefined && text('to') !== undefined && text('days') !== undefined) {
    return '--from, --to and --days are given; two of them tell the period';
  }
  const from = text('from');
  const to = text('to');
  const fromMs = from === undefined ? null : Date.parse(from);
  // Without --days what begins at --from lasts until now.
  const toMs = to === undefined ? (fromMs !== null && text('days') !== undefined ? fromMs + days * DAY_MS : nowMs) : Date.parse(to);
  const period = { fromMs: fromMs ?? toMs - days * DAY_MS, toMs: Math.min(toMs, nowMs) };
  if (period.fromMs < period.toMs) return period;
  return `the period would begin at ${isoUtc(period.fromMs)} and end at ${isoUtc(period.toMs)}; it must begin before it ends, and before now`;
}
