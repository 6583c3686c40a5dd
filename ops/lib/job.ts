import type { ParseArgsOptionsConfig } from 'node:util';
import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import { worstStatus } from '../../src/core/alerts/alert.ts';
import type { Arguments } from '../../src/core/platform/arguments.ts';
import type { Log } from '../../src/core/ports.ts';

/** Nagios-compatible exit codes. Wrong usage and an invalid configuration are UNKNOWN. */
export const EXIT = { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 } as const;
export type JobStatus = keyof typeof EXIT;

/** Wrong usage or an invalid configuration; the message gives the correct form. It does not count as a run of the job. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** How a run ended. */
export interface JobResult {
  readonly status: JobStatus;
  /** Text output, without colours; the scheduler records the last lines. */
  readonly lines: readonly string[];
  /** What `--json` prints. */
  readonly document: unknown;
}

export type Trigger = 'schedule' | 'catch_up' | 'manual';

/** The inputs and services for a run of a job. */
export interface JobContext {
  readonly config: Config;
  readonly configFile: string;
  /** `storage.path` as the service uses it; contains metrics/, alerts/, logs/, backups/ and ops/. */
  readonly dataFolder: string;
  readonly version: string;
  readonly rest: RestClient;
  readonly environment: NodeJS.ProcessEnv;
  readonly trigger: Trigger;
  /** Aborted at the timeout, and when the run must stop early. */
  readonly signal: AbortSignal;
  /** Wall clock, in milliseconds since the epoch. */
  readonly nowMs: () => number;
  readonly log: Log;
  /** Shows the progress of long work, only on terminals. */
  readonly progress: (line: string) => void;
}

export type JobArguments = Arguments;

/** One maintenance job or command: `edge-health ops NAME`. */
export interface Job {
  readonly name: string;
  readonly summary: string;
  /** The synopsis after `edge-health ops `, without the common options. */
  readonly usage: string;
  /** Its own options and rules, for --help. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  readonly positionals: number;
  /** Rejects with UsageError, or with another error, which counts as UNKNOWN. */
  run(context: JobContext, given: JobArguments): Promise<JobResult>;
}

/** The worst of several statuses, OK for none. */
export function worst(statuses: readonly JobStatus[]): JobStatus {
  return worstStatus<JobStatus>(['OK', ...statuses]);
}
