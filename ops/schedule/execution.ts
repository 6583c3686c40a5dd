import { type Clocks, isoUtc } from '../../src/core/time.ts';
import { EXIT, type JobStatus, type Trigger } from '../lib/job.ts';
import type { JobName, Run } from './jobs.ts';
import type { Runner } from './runners.ts';

/** How a run ended: by itself; not at all, although it was told to; because the scheduler ends; or it had not begun. */
export type Ending =
  | { readonly kind: 'ended'; readonly run: Run }
  | { readonly kind: 'hanging'; readonly run: Run }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'busy' };

/** A run that is under way. */
export interface Execution {
  /** Resolves when the run has ended, or is given up. */
  readonly ended: Promise<Ending>;
  /** Resolves when the run has truly ended. */
  readonly returned: Promise<void>;
  /** Ends it for good, since the scheduler ends. */
  stop(): void;
}

export interface ExecutionOptions {
  readonly name: JobName;
  readonly trigger: Exclude<Trigger, 'manual'>;
  readonly runner: Runner;
  readonly deadlineSeconds: number;
  /** From the request to end to giving up. */
  readonly graceSeconds: number;
  readonly clocks: Clocks;
}

/** Begins a run. What goes beyond the deadline has failed, whatever it says of itself. */
export function execute({ clocks, deadlineSeconds, graceSeconds, name, runner, trigger }: ExecutionOptions): Execution {
  const started = isoUtc(clocks.wallMilliseconds());
  const begunSeconds = clocks.monotonicSeconds();
  const runOf = (status: JobStatus, lines: readonly string[]): Run => ({
    started,
    duration_seconds: Math.round((clocks.monotonicSeconds() - begunSeconds) * 1000) / 1000,
    status,
    exit_code: EXIT[status],
    trigger,
    lines: [...lines],
  });
  const late = `CRITICAL  ${name} did not end within ${deadlineSeconds} s (ops.timeouts.${name})`;
  const ending = new AbortController();
  let isStopping = false;
  let giveUp: NodeJS.Timeout | undefined;
  let onGivenUp: (ending: Ending) => void = () => undefined;
  const givenUp = new Promise<Ending>((resolve) => {
    onGivenUp = resolve;
  });
  const askToEnd = (reason: string): void => {
    if (ending.signal.aborted) return;
    ending.abort(new Error(reason));
    giveUp = setTimeout(() => {
      onGivenUp(isStopping ? { kind: 'interrupted' } : { kind: 'hanging', run: runOf('CRITICAL', [late, HANGS]) });
    }, graceSeconds * 1000);
  };
  const deadline = setTimeout(() => askToEnd(`not done within ${deadlineSeconds} s`), deadlineSeconds * 1000);
  const result = runner(name, trigger, ending.signal).finally(() => {
    clearTimeout(deadline);
    clearTimeout(giveUp);
  });
  const ended = result.then((outcome): Ending => {
    if (outcome === 'busy') return { kind: 'busy' };
    const { lines, status } = outcome;
    if (!ending.signal.aborted) return { kind: 'ended', run: runOf(status, lines) };
    if (!isStopping) return { kind: 'ended', run: runOf('CRITICAL', [...lines, late]) };
    // It may have been done all the same.
    return status === 'OK' || status === 'WARNING' ? { kind: 'ended', run: runOf(status, lines) } : { kind: 'interrupted' };
  });
  return {
    ended: Promise.race([ended, givenUp]),
    returned: result.then(() => undefined),
    stop: () => {
      // One that hangs has been asked already.
      isStopping = true;
      askToEnd('the scheduler ends');
    },
  };
}

const HANGS = 'CRITICAL  it does not react; restart the scheduler to be rid of it: systemctl restart edge-health-ops';
