/** The stretches of time that the charts can show. */
export const WINDOWS = ['5min', '1h', '24h'] as const;
export type WindowName = (typeof WINDOWS)[number];

export const WINDOW_WORDS: Readonly<Record<WindowName, { short: string; long: string }>> = {
  '5min': { short: '5 min', long: 'last 5 minutes' },
  '1h': { short: '1 h', long: 'last hour' },
  '24h': { short: '24 h', long: 'last 24 hours' },
};

export interface WindowPlan {
  readonly windowMs: number;
  readonly bucketMs: number;
  /** For /health/history: averages over steps; null: every sample. */
  readonly step: string | null;
  /** What a point stands for, in words; null: a sample. */
  readonly averages: string | null;
}

/** Above these rates the API is asked for averages, so that an answer stays within a page and costs the machine little. */
const EVERY_SAMPLE_UP_TO_HERTZ = 2;
const FINE_STEPS_UP_TO_HERTZ = 20;

/** How a window is asked for and kept: 60 to 360 points, whatever the rate. */
export function planWindow(name: WindowName, hertz: number): WindowPlan {
  switch (name) {
    case '5min':
      return hertz > EVERY_SAMPLE_UP_TO_HERTZ
        ? { windowMs: 300_000, bucketMs: 1000, step: '1s', averages: 'averages of 1 s' }
        : { windowMs: 300_000, bucketMs: 1000, step: null, averages: null };
    case '1h':
      return hertz > FINE_STEPS_UP_TO_HERTZ
        ? { windowMs: 3_600_000, bucketMs: 60_000, step: '1m', averages: 'averages of 1 min' }
        : { windowMs: 3_600_000, bucketMs: 10_000, step: '10s', averages: 'averages of 10 s' };
    case '24h':
      return { windowMs: 86_400_000, bucketMs: 300_000, step: '5m', averages: 'averages of 5 min' };
  }
}

/** Neighbours further apart than this have a gap between them. */
export function gapMs(bucketMs: number, hertz: number): number {
  return Math.max(1.5 * bucketMs, 3000 / hertz);
}

/** Of the last step only a part has passed: how many samples its mean stands for tells how much a further one weighs. */
export function samplesOfStep(startMs: number, nowMs: number, bucketMs: number, hertz: number): number {
  return Math.max(1, (Math.min(bucketMs, Math.max(0, nowMs - startMs)) / 1000) * hertz);
}
