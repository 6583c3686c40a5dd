import type { StatusDocument } from '../../src/client/documents.ts';
import type { ShownUnits, UnitProperties } from '../../src/client/systemctl-show.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { JobContext, JobStatus } from '../lib/job.ts';
import { withTimeout } from '../lib/timeout.ts';
import type { Counters } from './previous-run.ts';

type Measured = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** What a check found about one thing. */
export interface CheckResult {
  /** Name of the thing: `disk /`. It is the same in every run and has no colon, because notifications identify findings by it. */
  readonly name: string;
  readonly status: JobStatus;
  readonly message: string;
  /** The remedy, or null if no action is needed. */
  readonly remedy: string | null;
  /** Whether to print a line although nothing is wrong. */
  readonly isNote: boolean;
  readonly measured: Measured;
}

/** Makes the results about one thing. */
export function resultsFor(name: string, measured: Measured = {}) {
  const problem =
    (status: JobStatus) =>
    (message: string, remedy: string): CheckResult => ({ name, status, message, remedy, isNote: false, measured });
  const ok = (message: string): CheckResult => ({ name, status: 'OK', message, remedy: null, isNote: false, measured });
  return {
    ok,
    note: (message: string, remedy: string | null = null): CheckResult => ({ ...ok(message), isNote: true, remedy }),
    warning: problem('WARNING'),
    critical: problem('CRITICAL'),
    unknown: problem('UNKNOWN'),
  };
}

/** What the service returned for /status. */
export type ServiceAnswer =
  | {
      readonly kind: 'answer';
      readonly status: StatusDocument;
      /** Response time of /status. */
      readonly seconds: number;
      /** The open alerts of its own node; null if /alerts failed. */
      readonly openAlerts: readonly Alert[] | null;
    }
  | { readonly kind: 'unreachable'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string; readonly httpStatus: number };

export const UNIT_PROPERTIES = [
  ...(['Id', 'LoadState', 'UnitFileState', 'ActiveState', 'SubState', 'Result', 'ExecMainStatus', 'NRestarts'] as const),
  ...(['MemoryCurrent', 'MemoryMax', 'ControlGroup', 'StateChangeTimestamp'] as const),
] as const;
export type Unit = UnitProperties<(typeof UNIT_PROPERTIES)[number]>;

/** What the checks of one run share. */
export interface CheckContext extends JobContext {
  /** Whether the service was given by its address, so that it may run on another machine. */
  readonly isRemote: boolean;
  readonly counters: Counters;
  /** Each of these two is read once per run. */
  readonly service: Promise<ServiceAnswer>;
  readonly units: Promise<ShownUnits<(typeof UNIT_PROPERTIES)[number]>>;
}

/** Reads and judges one thing. The signal of the context is aborted when the check times out. */
export type Check = (context: CheckContext) => Promise<readonly CheckResult[]>;

/** Must exceed the timeout of every reader. */
const TIMEOUT_SECONDS = 20;

/** Runs a check. If it fails or hangs, only its own results are lost. */
export async function runCheck(name: string, check: Check, context: CheckContext): Promise<readonly CheckResult[]> {
  const ending = new AbortController();
  try {
    return await withTimeout(TIMEOUT_SECONDS, check({ ...context, signal: ending.signal }), context.signal);
  } catch (error) {
    return [
      resultsFor(name).unknown(`the check failed: ${(error as Error).message}`, 'for details run: sudo edge-health ops health_check'),
    ];
  } finally {
    ending.abort(new Error(`the check of ${name} is over`));
  }
}
