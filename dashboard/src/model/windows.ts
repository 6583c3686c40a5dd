/** Lengths of the chart ranges that end now. */
export const WINDOWS = ['5min', '1h', '24h', '7d'] as const;
export type WindowName = (typeof WINDOWS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const WINDOW_MS: Readonly<Record<WindowName, number>> = { '5min': 5 * MINUTE_MS, '1h': HOUR_MS, '24h': DAY_MS, '7d': 7 * DAY_MS };

/** The time range of the charts: up to now, or between two instants of the shown node's clock. */
export type Range =
  | { readonly kind: 'live'; readonly window: WindowName }
  | { readonly kind: 'fixed'; readonly fromMs: number; readonly toMs: number };

export const DEFAULT_RANGE: Range = { kind: 'live', window: '5min' };

export function rangeMs(range: Range): number {
  return range.kind === 'live' ? WINDOW_MS[range.window] : range.toMs - range.fromMs;
}

/** First and last instant shown at the time `nowMs`. */
export function edgesOf(range: Range, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  return range.kind === 'live' ? { fromMs: nowMs - WINDOW_MS[range.window], toMs: nowMs } : range;
}

export interface RangePlan {
  readonly windowMs: number;
  readonly bucketMs: number;
  /** Parameter `step` of /health/history; null: every sample. */
  readonly step: string | null;
  /** The step of lowest and highest values; null: they are not requested, since every sample is requested. */
  readonly bandStep: string | null;
}

/** At higher rates the page requests averages, so that a response fits in one page of the API and costs the machine little. */
const EVERY_SAMPLE_UP_TO_HERTZ = 2;
const FINE_STEPS_UP_TO_HERTZ = 20;

/** The steps that the page requests, and the longest range for which it does. */
const STEPS = [
  { step: '1s', bucketMs: 1000, upToMs: 10 * MINUTE_MS },
  { step: '10s', bucketMs: 10_000, upToMs: 4 * HOUR_MS },
  { step: '1m', bucketMs: MINUTE_MS, upToMs: 7 * DAY_MS },
  { step: '1h', bucketMs: HOUR_MS, upToMs: Number.POSITIVE_INFINITY },
] as const;
/** Lowest and highest values are requested in at most this many steps: three lists of a week in minutes would be 6 MB. */
const MAX_BAND_STEPS = 1500;

/** Plans the resolution of a range: at most as many points as there are minutes in a week, at any rate. */
export function planRange(range: Range, hertz: number): RangePlan {
  const windowMs = rangeMs(range);
  const isFast = hertz > FINE_STEPS_UP_TO_HERTZ;
  // Averages of 1 s are computed from the samples, averages of 1 min are stored.
  const { bucketMs, step } = STEPS.find((one) => windowMs <= one.upToMs && !(isFast && one.step === '10s')) ?? STEPS[3];
  if (step === '1s' && hertz <= EVERY_SAMPLE_UP_TO_HERTZ) return { windowMs, bucketMs, step: null, bandStep: null };
  const band = STEPS.find((one) => one.bucketMs >= bucketMs && windowMs / one.bucketMs <= MAX_BAND_STEPS) ?? STEPS[3];
  return { windowMs, bucketMs, step, bandStep: band.step };
}

/** Neighbouring points further apart than this are drawn with a gap. */
export function gapMs(bucketMs: number, hertz: number): number {
  return Math.max(1.5 * bucketMs, 3000 / hertz);
}

/** The number of samples in a step's mean. The last step is not complete; its count is the weight when live samples are added. */
export function samplesOfStep(startMs: number, nowMs: number, bucketMs: number, hertz: number): number {
  return Math.max(1, (Math.min(bucketMs, Math.max(0, nowMs - startMs)) / 1000) * hertz);
}

export function stepMs(step: string): number {
  return STEPS.find((one) => one.step === step)?.bucketMs ?? HOUR_MS;
}
