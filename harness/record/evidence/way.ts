/** By which way statuses and alerts are heard. */
export const WAYS = ['topic', 'events'] as const;
export type Way = (typeof WAYS)[number];
