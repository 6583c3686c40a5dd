import type { ParseArgsOptionsConfig } from 'node:util';
import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import type { Log } from '../../src/core/ports.ts';

/** Exit codes, as monitoring plugins have them. Wrong usage and a wrong configuration are UNKNOWN. */
export const EXIT = { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 } as const;
export type JobStatus = keyof typeof EXIT;

/** A mistake in how a program was called, or in the configuration; the message says what is right. It is no run: nobody is told of it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** How a run ended. */
export interface JobResult {
  readonly status: JobStatus;
  /** For people, without colours; the scheduler keeps the last of them. */
  readonly lines: readonly string[];
  /** What `--json` prints. */
  readonly document: unknown;
}

export type Trigger = 'schedule' | 'missed' | 'manual';

/** What a program is given to work with. */
export interface JobContext {
  readonly config: Config;
  readonly configFile: string;
  /** `storage.path` as the service has it: metrics/, alerts/, logs/, backups/ and ops/ lie in it. */
  readonly dataFolder: string;
  readonly version: string;
  readonly rest: RestClient;
  readonly environment: NodeJS.ProcessEnv;
  readonly trigger: Trigger;
  /** Aborted at the deadline, and when the run is to end early. */
  readonly signal: AbortSignal;
  /** Wall clock, in milliseconds since the epoch. */
  readonly nowMs: () => number;
  readonly log: Log;
  /** Shows on a terminal how far long work is; nobody sees it elsewhere. */
  readonly progress: (line: string) => void;
}

export interface JobArguments {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/** One program of operations: `edge-health ops NAME`. */
export interface Job {
  readonly name: string;
  readonly summary: string;
  /** After `edge-health ops `: how it is called, without the options that all have. */
  readonly usage: string;
  /** What --help prints of its own options and rules. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  readonly positionals: number;
  /** Rejects with UsageError, or for what nobody foresaw, which counts as UNKNOWN. */
  run(context: JobContext, given: JobArguments): Promise<JobResult>;
}

const BY_WEIGHT: readonly JobStatus[] = ['OK', 'UNKNOWN', 'WARNING', 'CRITICAL'];

/** The worst of several, OK where there is none; what is unknown weighs less than what is known to be wrong. */
export function worst(statuses: readonly JobStatus[]): JobStatus {
  return statuses.reduce<JobStatus>((a, b) => (BY_WEIGHT.indexOf(b) > BY_WEIGHT.indexOf(a) ? b : a), 'OK');
}
