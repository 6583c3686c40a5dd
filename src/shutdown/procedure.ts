import { nullAfterTimeout, withTimeout } from '../core/platform/timeout.ts';
import {
  type ListItems,
  nextPhase,
  ON_FAILURE,
  type PowerControl,
  type ShutdownContext,
  type ShutdownPhase,
  type ShutdownState,
  type ShutdownStep,
  type ShutdownTimes,
  type StepItem,
  type StepOutcome,
  shutdownTimes,
} from '../core/shutdown/shutdown.ts';

/** Severity of a report, for the log. */
export type ReportLevel = 'notice' | 'warning' | 'error';
export type Report = (state: ShutdownState, step: ShutdownStep, level: ReportLevel, message: string) => void;

export interface ProcedureOptions {
  readonly context: ShutdownContext;
  readonly timeoutSeconds: number;
  readonly hooks: ListItems;
  readonly units: ListItems;
  /** Resolves when the request and its reports so far are stored, or soon after. */
  readonly recorded: () => Promise<void>;
  /** Writes pending records to the database; resolves with the reason of a failure, or null. */
  readonly flushStore: () => Promise<string | null>;
  readonly power: PowerControl;
  readonly report: Report;
}

/** Outcome of a step, and the problem if it failed. */
interface StepResult {
  readonly outcome: StepOutcome;
  readonly problem: string | null;
}

/** Grace period of a running hook when the service is stopped. */
const STOP_GRACE_SECONDS = 1;
/** Time limit of the last step, even near the deadline. */
const LEAST_POWER_SECONDS = 20;
/** Delay before the machine shuts down, so that the response to the call is sent first. */
const ANSWERED_SECONDS = 0.5;
/** A machine that shuts down stops this service; until then the state of the shutdown is polled at this interval. */
const WATCH_SECONDS = 5;
/** Longest time that hanging services can delay the shutdown of the machine. */
const MAX_POWER_OFF_SECONDS = 600;

/**
 * One run of the safe shutdown, from the announcement to the last step: follows the table of core/shutdown/shutdown.ts within its times
 * and reports each step.
 */
export class Procedure {
  readonly #options: ProcedureOptions;
  readonly #times: ShutdownTimes;
  readonly #stopping: Promise<'stopped'>;
  readonly #answered: Promise<unknown>;
  #stop: () => void = () => undefined;
  #step: ShutdownStep = 'announce';
  #hasStopped: readonly string[] = [];

  constructor(options: ProcedureOptions) {
    this.#options = options;
    this.#times = shutdownTimes(options.timeoutSeconds);
    this.#stopping = new Promise((resolve) => {
      this.#stop = () => resolve('stopped');
    });
    this.#answered = nullAfterTimeout(ANSWERED_SECONDS, this.#stopping);
  }

  /** The last step begun. */
  get step(): ShutdownStep {
    return this.#step;
  }

  /** Runs every step; resolves with the outcome. Never rejects. */
  async run(): Promise<'completed' | 'aborted'> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<'out_of_time'>((resolve) => {
      timer = setTimeout(() => resolve('out_of_time'), this.#times.terminateAt * 1000);
    });
    let phase: ShutdownPhase = 'announce';
    while (phase !== 'completed' && phase !== 'aborted') {
      this.#step = phase;
      const result: StepResult = await this.#run(phase, timeout).catch((error: Error) => failed(error.message));
      phase = nextPhase(phase, result.outcome, this.#options.context.reason);
      this.#reportStepEnd(result, phase);
    }
    clearTimeout(timer);
    return phase === 'completed' && this.#options.context.action !== 'dry-run' ? this.#awaitPowerOff() : phase;
  }

  /** Ends running items and the procedure; run() resolves when that is done. */
  stop(): void {
    this.#stop();
  }

  #run(step: ShutdownStep, timeout: Promise<'out_of_time'>): Promise<StepResult> {
    switch (step) {
      case 'announce':
        return this.#announce(timeout);
      case 'hooks':
        return this.#runItems(this.#options.hooks, timeout);
      case 'stop_units':
        return this.#runItems(this.#options.units, timeout);
      case 'store':
        return this.#store();
      case 'power':
        return this.#power();
    }
  }

  async #announce(timeout: Promise<'out_of_time'>): Promise<StepResult> {
    const { context, recorded, timeoutSeconds } = this.#options;
    const { action, reason, requestedBy } = context;
    this.#begin(`safe shutdown for ${reason}, requested by ${requestedBy}: ${action} within ${timeoutSeconds} s`);
    const outcome = await Promise.race([recorded().then(() => 'done' as const), timeout, this.#stopping]);
    return { outcome, problem: null };
  }

  async #runItems(listItems: ListItems, timeout: Promise<'out_of_time'>): Promise<StepResult> {
    const listed = await Promise.race([listItems(), timeout, this.#stopping]);
    if (typeof listed === 'string') return { outcome: listed, problem: null };
    this.#begin(listed.length === 0 ? this.#texts.none : `${this.#texts.doing}: ${listed.map(({ name }) => name).join(', ')}`);
    let first: string | null = null;
    for (const item of listed) {
      const { outcome, problem } = await this.#runItem(item, timeout);
      if (outcome === 'failed') first ??= problem;
      else if (outcome !== 'done') return { outcome, problem };
      if (outcome === 'failed' && ON_FAILURE[this.#options.context.reason] === 'abort') break;
    }
    return { outcome: first === null ? 'done' : 'failed', problem: first };
  }

  async #runItem(item: StepItem, timeout: Promise<'out_of_time'>): Promise<StepResult> {
    // Both may have happened while the previous item ended; this one is then not begun.
    const early = await Promise.race([timeout, this.#stopping, Promise.resolve(null)]);
    if (early !== null) return { outcome: early, problem: null };
    const running = item.start(this.#options.context);
    const end = await Promise.race([running.ended.then((problem) => ({ problem })), timeout, this.#stopping]);
    const grace = end === 'stopped' ? STOP_GRACE_SECONDS : this.#times.graceSeconds;
    const how = await running.end(grace);
    if (typeof end === 'string') return { outcome: end, problem: `${item.name} was ${how === 'killed' ? 'killed' : 'terminated'}` };
    if (end.problem !== null) {
      this.#options.report('in_progress', this.#step, 'warning', `${item.name} failed: ${end.problem}`);
      return failed(`${item.name}: ${end.problem}`);
    }
    if (this.#step === 'stop_units') this.#hasStopped = [...this.#hasStopped, item.name];
    const left = how === 'ended' ? '' : '; its remaining processes were terminated';
    this.#options.report('in_progress', this.#step, 'notice', `${item.name} ${this.#texts.done}${left}`);
    return { outcome: 'done', problem: null };
  }

  async #store(): Promise<StepResult> {
    const { context, flushStore } = this.#options;
    this.#begin('writing pending records to the database');
    const seconds = Math.max(context.secondsLeft(), this.#times.storeSeconds);
    const problem = await withTimeout(seconds, flushStore());
    return problem === null ? { outcome: 'done', problem } : failed(problem);
  }

  async #power(): Promise<StepResult> {
    const { context, power, recorded } = this.#options;
    const { action } = context;
    this.#begin(action === 'dry-run' ? 'dry run: the machine stays up' : `requesting ${action}`);
    if (action !== 'dry-run') {
      // The outcome is determined after the next boot, which needs the record that this step was begun.
      const outcome = await Promise.race([this.#stopping, Promise.all([this.#answered, recorded()])]);
      if (outcome === 'stopped') return { outcome, problem: null };
    }
    await withTimeout(Math.max(context.secondsLeft(), LEAST_POWER_SECONDS), power.perform(context));
    return { outcome: 'done', problem: null };
  }

  /** Waits after the last step until this service is stopped or the shutdown of the machine is canceled. */
  async #awaitPowerOff(): Promise<'completed' | 'aborted'> {
    const { context, power, report } = this.#options;
    for (let seconds = 0; seconds < MAX_POWER_OFF_SECONDS; seconds += WATCH_SECONDS) {
      if ((await nullAfterTimeout(WATCH_SECONDS, this.#stopping)) !== null) return 'completed';
      if ((await power.isGoingDown()) === false) break;
    }
    report('aborted', 'power', 'error', `aborted, the machine stays up: ${context.action} began and was canceled`);
    return 'aborted';
  }

  #begin(message: string): void {
    this.#options.report('in_progress', this.#step, 'notice', message);
  }

  /** Reports how a step ended and what follows. */
  #reportStepEnd({ outcome, problem }: StepResult, phase: ShutdownPhase): void {
    const { context, report } = this.#options;
    const { action, reason } = context;
    const step = this.#step;
    const why = problem === null ? '' : `: ${problem}`;
    if (phase === 'completed') {
      report('completed', step, 'notice', action === 'dry-run' ? 'completed; this was a dry run' : `completed: ${action} is under way`);
    } else if (phase === 'aborted') {
      const cause = outcome === 'stopped' ? `the service was stopped during the step ${step}` : `the step ${step} failed`;
      const stopped = this.#hasStopped.length > 0 ? `; units left stopped: ${this.#hasStopped.join(', ')}` : '';
      report('aborted', step, 'error', `aborted, the machine stays up: ${cause}${why}${stopped}`);
    } else if (outcome === 'out_of_time') {
      report('in_progress', step, 'warning', `step ${step} timed out${why}; continuing without the rest of it`);
    } else if (outcome === 'failed') {
      const reasonToGoOn = step === 'store' ? 'the shutdown does not depend on it' : `${reason} does not wait for it`;
      report('in_progress', step, 'warning', `the step ${step} failed${why}; continuing, ${reasonToGoOn}`);
    } else {
      report('in_progress', step, 'notice', `the step ${step} is done`);
    }
  }

  get #texts(): { readonly none: string; readonly doing: string; readonly done: string } {
    return this.#step === 'hooks'
      ? { none: 'there are no hooks to run', doing: 'running', done: 'is done' }
      : { none: 'there are no units to stop', doing: 'stopping', done: 'is stopped' };
  }
}

function failed(problem: string): StepResult {
  return { outcome: 'failed', problem };
}
