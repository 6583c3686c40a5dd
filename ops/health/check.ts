import type { JobContext } from '../lib/job.ts';
import type { Counters } from './memory.ts';
import { within } from './patience.ts';
import type { ServiceAnswer } from './service.ts';
import type { UnitsAnswer } from './units.ts';
import { finding, type Verdict } from './verdict.ts';

/** What the checks of one run have in common. */
export interface Situation {
  readonly context: JobContext;
  /** What stands before /proc, /sys, /run and /etc: empty but in tests. */
  readonly root: string;
  readonly counters: Counters;
  /** Each is asked once a run. */
  readonly service: Promise<ServiceAnswer>;
  readonly units: Promise<UnitsAnswer>;
}

export interface Check {
  readonly name: string;
  /** After which it is given up; the others know nothing of it. */
  readonly seconds: number;
  run(situation: Situation, signal: AbortSignal): Promise<readonly Verdict[]>;
}

/** Runs a check; one that fails, or does not end, costs its own verdicts. */
export async function runCheck(check: Check, situation: Situation): Promise<readonly Verdict[]> {
  const ending = new AbortController();
  try {
    return await within(check.seconds, check.run(situation, ending.signal), situation.context.signal);
  } catch (error) {
    const { message } = error as Error;
    return [
      finding(check.name, 'UNKNOWN', `the check failed: ${message}`, 'run edge-health ops health_check by hand, as root, to see more'),
    ];
  } finally {
    ending.abort(new Error(`the check of ${check.name} is over`));
  }
}
