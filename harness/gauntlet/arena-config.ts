import { SHORE } from './tide.ts';

/** Ten statuses a second: what is lost is told to a tenth of a second. */
export const HERTZ = 10;

/** What a machine of the gauntlet is configured with: alerts come from the tide alone, and at once. */
export const ARENA_CONFIG: Readonly<Record<string, unknown>> = {
  publish_frequency: HERTZ,
  thresholds: {
    cpu: { warning: 99.8, critical: 100 },
    memory: { warning: 99.8, critical: 99.9 },
    disk: { warning: 50, critical: 90 },
  },
  alerts: { raise_after_seconds: 0, clear_after_seconds: 0 },
  disk: { paths: [SHORE] },
};

export const ARENA_FILES: Readonly<Record<string, string>> = { '/etc/fstab': `tmpfs ${SHORE} tmpfs size=1m,mode=755 0 0\n` };

type Mapping = Readonly<Record<string, unknown>>;

const isMapping = (value: unknown): value is Mapping => typeof value === 'object' && value !== null && !Array.isArray(value);

/** `over` over `base`: mappings are merged, everything else replaces. */
export function merged(base: Mapping, over: Mapping): Mapping {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const old = result[key];
    result[key] = isMapping(old) && isMapping(value) ? merged(old, value) : value;
  }
  return result;
}
