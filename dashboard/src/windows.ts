/** Time ranges of the charts. */
export const WINDOWS = ['5min', '1h', '24h'] as const;
export type WindowName = (typeof WINDOWS)[number];

export interface WindowPlan {
  readonly windowMs: number;
  readonly bucketMs: number;
  /** Parameter `step` of /health/history; null: every sample. */
  readonly step: string | null;
}

/** At higher rates the page requests averages, so that a response fits in one page of the API and costs the machine little. */
const EVERY_SAMPLE_UP_TO_HERTZ = 2;
const FINE_STEPS_UP_TO_HERTZ = 20;

/** Plans the resolution of a window: 60 to 360 points at any rate. */
export function planWindow(name: WindowName, hertz: number): WindowPlan {
  switch (name) {
    case '5min':
      return hertz > EVERY_SAMPLE_UP_TO_HERTZ
        ? { windowMs: 300_000, bucketMs: 1000, step: '1s' }
        : { windowMs: 300_000, bucketMs: 1000, step: null };
    case '1h':
      return hertz > FINE_STEPS_UP_TO_HERTZ
        ? { windowMs: 3_600_000, bucketMs: 60_000, step: '1m' }
        : { windowMs: 3_600_000, bucketMs: 10_000, step: '10s' };
    case '24h':
      return { windowMs: 86_400_000, bucketMs: 300_000, step: '5m' };
  }
}

/** Neighbouring points further apart than this are drawn with a gap. */
export function gapMs(bucketMs: number, hertz: number): number {
  return Math.max(1.5 * bucketMs, 3000 / hertz);
}

/** The number of samples in a step's mean. The last step is not complete; its count is the weight when live samples are added. */
export function samplesOfStep(startMs: number, nowMs: number, bucketMs: number, hertz: number): number {
  return Math.max(1, (Math.min(bucketMs, Math.max(0, nowMs - startMs)) / 1000) * hertz);
}
