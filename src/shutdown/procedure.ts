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
  /** Called in the turn of the last report, so that no request can escalate a procedure that has ended. Never rejects. */
  readonly end: (outcome: 'completed' | 'aborted') => Promise<void>;
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
  readonly #stopping = Promise.withResolvers<'stopped'>();
  /** Resolves when running hooks and units are to be terminated. */
  readonly #timeout = Promise.withResolvers<'out_of_time'>();
  readonly #escalated = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #times: ShutdownTimes;
  #context: ShutdownContext;
  #answered: Promise<unknown>;
  #step: ShutdownStep = 'announce';
  #hasStopped: readonly string[] = [];
  #isGoingDown = false;

  constructor(options: ProcedureOptions) {
    this.#options = options;
    this.#context = options.context;
    this.#times = shutdownTimes(options.timeoutSeconds);
    this.#answered = nullAfterTimeout(ANSWERED_SECONDS, this.#stopping.promise);
  }

  /** That of the request, or of the one that escalated it. */
  get context(): ShutdownContext {
    return this.#context;
  }

  /** Runs every step; resolves after `end`. Never rejects. */
  async run(): Promise<void> {
    this.#startTimer();
    let phase: ShutdownPhase = 'announce';
    while (phase !== 'completed' && phase !== 'aborted') {
      this.#step = phase;
      const result: StepResult = await this.#run(phase).catch((error: Error) => failed(error.message));
      phase = nextPhase(phase, result.outcome, this.#context.reason);
      this.#reportStepEnd(result, phase);
    }
    clearTimeout(this.#timer);
    const { action } = this.#context;
    this.#isGoingDown = phase === 'completed' && action !== 'dry-run';
    if (this.#isGoingDown && (await this.#isCanceled())) {
      phase = 'aborted';
      this.#options.report(phase, 'power', 'error', `aborted, the machine stays up: ${action} began and was canceled`);
    }
    await this.#options.end(phase);
  }

  /** Continues for another reason, and within `timeoutSeconds` if that is sooner. To be called at most once. */
  escalate(context: ShutdownContext, timeoutSeconds: number): void {
    const { reason, requestedBy } = this.#context;
    if (timeoutSeconds < this.#context.secondsLeft()) {
      this.#times = shutdownTimes(timeoutSeconds);
      this.#startTimer();
    }
    this.#context = context;
    this.#answered = nullAfterTimeout(ANSWERED_SECONDS, this.#stopping.promise);
    this.#escalated.resolve();
    const { action, reason: by } = context;
    const what = `${by}, requested by ${context.requestedBy}: ${action} within ${context.secondsLeft().toFixed(1)} s, failures are skipped`;
    const state = this.#isGoingDown ? 'completed' : 'in_progress';
    this.#options.report(state, this.#step, 'warning', `${reason}, requested by ${requestedBy}, was escalated to ${what}`);
  }

  /** Ends running items and the procedure; run() resolves when that is done. */
  stop(): void {
    this.#stopping.resolve('stopped');
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#timeout.resolve('out_of_time'), this.#times.terminateAt * 1000);
  }

  #run(step: ShutdownStep): Promise<StepResult> {
    switch (step) {
      case 'announce':
        return this.#announce();
      case 'hooks':
        return this.#runItems(this.#options.hooks);
      case 'stop_units':
        return this.#runItems(this.#options.units);
      case 'store':
        return this.#store();
      case 'power':
        return this.#power();
    }
  }

  async #announce(): Promise<StepResult> {
    const { recorded, timeoutSeconds } = this.#options;
    const { action, reason, requestedBy } = this.#context;
    this.#begin(`safe shutdown for ${reason}, requested by ${requestedBy}: ${action} within ${timeoutSeconds} s`);
    const outcome = await Promise.race([recorded().then(() => 'done' as const), this.#timeout.promise, this.#stopping.promise]);
    return { outcome, problem: null };
  }

  async #runItems(listItems: ListItems): Promise<StepResult> {
    const listed = await Promise.race([listItems(), this.#timeout.promise, this.#stopping.promise]);
    if (typeof listed === 'string') return { outcome: listed, problem: null };
    this.#begin(listed.length === 0 ? this.#texts.none : `${this.#texts.doing}: ${listed.map(({ name }) => name).join(', ')}`);
    let first: string | null = null;
    for (const item of listed) {
      const { outcome, problem } = await this.#runItem(item);
      if (outcome === 'failed') first ??= problem;
      else if (outcome !== 'done') return { outcome, problem };
      if (outcome === 'failed' && ON_FAILURE[this.#context.reason] === 'abort') break;
    }
    return { outcome: first === null ? 'done' : 'failed', problem: first };
  }

  async #runItem(item: StepItem): Promise<StepResult> {
    // Both may have happened while the previous item ended; this one is then not begun.
    const early = await Promise.race([this.#timeout.promise, this.#stopping.promise, Promise.resolve(null)]);
    if (early !== null) return { outcome: early, problem: null };
    const running = item.start(this.#context);
    const end = await Promise.race([running.ended.then((problem) => ({ problem })), this.#timeout.promise, this.#stopping.promise]);
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
    this.#begin('writing pending records to the database');
    const problem = await this.#withinDeadline(this.#options.flushStore(), () => this.#times.storeSeconds);
    return problem === null ? { outcome: 'done', problem } : failed(problem);
  }

  async #power(): Promise<StepResult> {
    const { power, recorded } = this.#options;
    const { action } = this.#context;
    this.#begin(action === 'dry-run' ? 'dry run: the machine stays up' : `requesting ${action}`);
    if (action !== 'dry-run') {
      // The outcome is determined after the next boot, which needs the record that this step was begun.
      const outcome = await Promise.race([this.#stopping.promise, Promise.all([this.#answered, recorded()])]);
      if (outcome === 'stopped') return { outcome, problem: null };
    }
    const perform = (): Promise<void> => this.#withinDeadline(power.perform(this.#context), () => LEAST_POWER_SECONDS);
    const { reason } = this.#context;
    await perform().catch((error: Error) => {
      if (this.#context.reason === reason) throw error;
      return perform(); // Escalated meanwhile: a lock that forbade the first attempt is overridden.
    });
    return { outcome: 'done', problem: null };
  }

  /** Rejects if `work` is not done at the deadline, also if an escalation moves that, or after `leastSeconds`, whichever is later. */
  #withinDeadline<T>(work: Promise<T>, leastSeconds: () => number): Promise<T> {
    const seconds = (): number => Math.max(this.#context.secondsLeft(), leastSeconds());
    const sooner = this.#escalated.promise.then(() => withTimeout(seconds(), work));
    return withTimeout(seconds(), Promise.race([work, sooner]));
  }

  /** Waits after the last step until this service is stopped or the shutdown of the machine is canceled. */
  async #isCanceled(): Promise<boolean> {
    for (let seconds = 0; seconds < MAX_POWER_OFF_SECONDS; seconds += WATCH_SECONDS) {
      if ((await nullAfterTimeout(WATCH_SECONDS, this.#stopping.promise)) !== null) return false;
      if ((await this.#options.power.isGoingDown()) === false) return true;
    }
    return true;
  }

  #begin(message: string): void {
    this.#options.report('in_progress', this.#step, 'notice', message);
  }

  /** Reports how a step ended and what follows. */
  #reportStepEnd({ outcome, problem }: StepResult, phase: ShutdownPhase): void {
    const { report } = this.#options;
    const { action, reason } = this.#context;
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
