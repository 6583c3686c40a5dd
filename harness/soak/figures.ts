import type { Limit } from '../engine/judgement.ts';

export const LOSS_LIMIT: Limit = { comparison: '<=', value: 1, unit: '%' };

/** `60,000`. */
export const count = (value: number): string => Math.round(value).toLocaleString('en-US');

/** `50:24`: minutes and seconds. */
export function clock(ofSeconds: number): string {
  const seconds = Math.max(0, Math.round(ofSeconds));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
