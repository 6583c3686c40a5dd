import type { Log } from '../core/ports.ts';
import { type ServiceManager, type StatusSummary, stall, summaryLine } from '../core/supervision.ts';
import { printable } from '../core/text.ts';

export interface SupervisionOptions {
  /** Null: there is no service manager. */
  readonly manager: ServiceManager | null;
  /** The service manager's watchdog timeout; null: none. */
  readonly watchdogSeconds: number | null;
  readonly periodSeconds: number;
  readonly monotonicSeconds: () => number;
  /** When the last sample was stored and published; null: none yet. */
  readonly lastSampleSeconds: () => number | null;
  readonly summary: () => StatusSummary;
  readonly log: Log;
}

/** Interval of updating the status line, unless the watchdog needs a shorter one. */
const STATUS_SECONDS = 5;
/** Interval of polling REST at the start, and for how long: half of the unit's TimeoutStartSec. */
const READY_POLL_MS = 250;
const READY_SECONDS = 30;
/** Pings per watchdog timeout: two may be late. */
const PINGS = 4;
/**
 * Delay after a withheld ping. If the process was stopped for seconds, a ping may be due just before the next sample; the regular next
 * ping could exceed the watchdog timeout.
 */
const RETRY_MS = 250;
/** A shorter watchdog interval is ignored, because it would use too much CPU. */
const LEAST_SECONDS = 0.05;

/** Sends state, status and watchdog pings to the service manager. */
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

  /**
   * Waits until the service is usable, then reports readiness: polls `answers` until it is true or the service ends. After READY_SECONDS it
   * reports readiness in any case: a restart would not help a network in which REST cannot be reached, and would interrupt monitoring.
   */
  async readyOnce(answers: () => Promise<boolean>): Promise<void> {
    const { log, monotonicSeconds } = this.#options;
    const begun = monotonicSeconds();
    let hasLogged = false;
    while (!this.#hasStopped) {
      const isReady = await answers();
      if (isReady || monotonicSeconds() - begun >= READY_SECONDS) {
        if (!isReady) log('error', 'REST API does not respond on this machine; does a firewall block it?');
        return this.ready();
      }
      if (!hasLogged) log('warning', 'REST API not responding yet');
      hasLogged = true;
      await new Promise((resolve) => {
        setTimeout(resolve, READY_POLL_MS);
      });
    }
  }

  /** Reports readiness: the first sample was taken and REST responds. */
  ready(): void {
    const { manager, watchdogSeconds } = this.#options;
    if (!manager || this.#timer || this.#hasStopped) return;
    const seconds = Math.min(STATUS_SECONDS, watchdogSeconds === null ? STATUS_SECONDS : watchdogSeconds / PINGS);
    this.#timer = setInterval(() => this.beat(), Math.max(LEAST_SECONDS, seconds) * 1000);
    // The timer alone must not keep the process alive.
    this.#timer.unref();
    this.#send(['READY=1', ...this.#alive()]);
  }

  /** Sends what is due: the ping, if the service makes progress, and the status line, if it changed. */
  beat(): void {
    if (this.#timer) this.#send(this.#alive());
  }

  /** Sets the status line until the next beat; used during the start. */
  setStatusLine(line: string): void {
    this.#send([`STATUS=${line}`]);
  }

  stop(): void {
    this.#hasStopped = true;
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#retry) clearTimeout(this.#retry);
    this.#retry = null;
    this.#send(['STOPPING=1', 'STATUS=stopping: writing pending records to the database']);
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
