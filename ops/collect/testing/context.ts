import { RestClient } from '../../../src/client/rest.ts';
import { DEFAULT_CONFIG } from '../../../src/config/schema.ts';
import type { JobContext } from '../../lib/job.ts';

/** The context of a program in a test; nothing listens at the address of the service unless the test sets another one. */
export function contextFor(dataFolder: string, url: string, more: Partial<JobContext> = {}): JobContext & { readonly logged: string[] } {
  const logged: string[] = [];
  return {
    config: DEFAULT_CONFIG,
    configFile: '',
    dataFolder,
    version: '1.2.3',
    rest: new RestClient({ base: url, token: null }),
    environment: {},
    trigger: 'manual',
    signal: new AbortController().signal,
    nowMs: Date.now,
    log: (_, message) => logged.push(message),
    progress: () => undefined,
    logged,
    ...more,
  };
}

export const NOT_THERE = 'http://127.0.0.1:1';

export const GIVEN = { options: {}, positionals: [] };
