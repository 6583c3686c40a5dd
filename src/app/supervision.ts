import type { Log } from '../core/ports.ts';
import { type ServiceManager, type Summary, stall, summaryLine } from '../core/supervision.ts';
import { printable } from '../core/text.ts';

export interface SupervisionOptions {
  /** Null: nobody listens. */
  readonly manager: ServiceManager | null;
  /** The longest silence that the service manager stands; null: any. */
  readonly watchdogSeconds: number | null;
  readonly periodSeconds: number;
  readonly monotonicSeconds: () => number;
  /** When the last sample had gone its whole way; null: none yet. */
  readonly lastSampleSeconds: () => number | null;
  readonly summary: () => Summary;
  readonly log: Log;
}

/** The status line is renewed this often where no watchdog asks for more. */
const STATUS_SECONDS = 5;
/** While REST does not answer at the start it is asked again this often; how long that may go on is the service manager's to say. */
const ASK_AGAIN_MS = 250;
/** Pings within one watchdog time: two may come late. */
const PINGS = 4;
/**
 * After a withheld ping, until the next one. After the process was stopped for seconds the ping may be due just before the sample: the
 * regular next one could come after the watchdog time.
 */
const RETRY_MS = 250;
/** A watchdog that wants more is not obeyed: it would take the processor for itself. */
const LEAST_SECONDS = 0.05;

/** Tells the service manager how the service is, and that it gets on as long as it does. */
export class Supervision {
  readonly #options: SupervisionOptions;
  #timer: NodeJS.Timeout | null = null;
  #retry: NodeJS.Timeout | null = null;
  #line = '';
  #stalled = false;
  #hasStopped = false;

  constructor(options: SupervisionOptions) {
    this.#options = options;
  }

  /** Waits until the service is of use, then says so: `answers` is asked until it is true, or the service ends. */
  async readyOnce(answers: () => Promise<boolean>): Promise<void> {
    while (!this.#hasStopped) {
      if (await answers()) return this.ready();
      this.#options.log('warning', 'REST API not answering yet');
      await new Promise((resolve) => {
        setTimeout(resolve, ASK_AGAIN_MS);
      });
    }
  }

  /** From here on the service is of use: the first sample is there, and REST answers. */
  ready(): void {
    const { manager, watchdogSeconds } = this.#options;
    if (!manager || this.#timer || this.#hasStopped) return;
    const seconds = Math.min(STATUS_SECONDS, watchdogSeconds === null ? STATUS_SECONDS : watchdogSeconds / PINGS);
    this.#timer = setInterval(() => this.beat(), Math.max(LEAST_SECONDS, seconds) * 1000);
    // It does not keep a process alive that has nothing else to do.
    this.#timer.unref();
    this.#send(['READY=1', ...this.#alive()]);
  }

  /** Sends what is due: the ping, if the service gets on, and the line, if it changed. */
  beat(): void {
    if (this.#timer) this.#send(this.#alive());
  }

  /** A line of its own until the next beat: what is going on at the start. */
  tell(line: string): void {
    this.#send([`STATUS=${line}`]);
  }

  stop(): void {
    this.#hasStopped = true;
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#retry) clearTimeout(this.#retry);
    this.#retry = null;
    this.#send(['STOPPING=1', 'STATUS=stopping: writing what is left to the store']);
  }

  #alive(): string[] {
    const { log, monotonicSeconds, lastSampleSeconds, periodSeconds, summary } = this.#options;
    const problem = stall(lastSampleSeconds(), periodSeconds, monotonicSeconds());
    const line = problem === null ? summaryLine(summary()) : `STALLED: ${problem}`;
    if (problem !== null && !this.#stalled) log('error', `watchdog ping withheld: ${problem}`);
    if (problem === null && this.#stalled) log('notice', 'watchdog pings resumed');
    this.#stalled = problem !== null;
    if (this.#stalled) this.#retrySoon();
    const state = problem === null ? ['WATCHDOG=1'] : [];
    if (line !== this.#line) state.push(`STATUS=${printable(line)}`);
    this.#line = line;
    return state;
  }

  #retrySoon(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      this.beat();
    }, RETRY_MS).unref();
  }

  #send(state: readonly string[]): void {
    if (state.length > 0) this.#options.manager?.notify(state.join('\n'));
  }
}
