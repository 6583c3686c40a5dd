import type { ServiceManager } from '../../src/core/supervision.ts';
import { printable } from '../../src/core/text.ts';
import { formatDuration } from '../../src/core/time/duration.ts';
import { counted } from '../engine/format.ts';
import type { Judgement, Quantity } from '../engine/judgement.ts';

/** Without a terminal, a line is printed after the first minute, and then at this interval. */
const FIRST_LINE_SECONDS = 60;
const LINE_SECONDS = 600;
const HEAD_SECONDS = 3600;
const STATUS_SECONDS = 10;
/** Pings per watchdog timeout, so that two may be late. */
const PINGS = 4;
const PING_MS = 5000;
const DEFAULT_COLUMNS = 80;

export interface DisplayOptions {
  readonly stream: NodeJS.WriteStream;
  /** Writes to the stream without waiting for it, so that a stopped terminal does not stop the observation. */
  readonly write: (text: string) => void;
  readonly manager: ServiceManager | null;
  readonly watchdogSeconds: number | null;
  readonly monotonicSeconds: () => number;
}

/**
 * Shows the progress of a run: on a terminal as a block that is redrawn each second, otherwise as a line every ten minutes; also sends
 * it to the service manager.
 */
export class Display {
  readonly #options: DisplayOptions;
  readonly #pingSeconds: number | null;
  #begunAt: number | null = null;
  #lines = 0;
  #lineAt = FIRST_LINE_SECONDS;
  #headAt = HEAD_SECONDS;
  #statusAt = 0;
  #pingAt = 0;
  #status = '';
  #isGone = false;

  constructor(options: DisplayOptions) {
    this.#options = options;
    this.#pingSeconds = options.watchdogSeconds === null ? null : options.watchdogSeconds / PINGS;
    // The run continues if the terminal was closed.
    options.stream.on('error', () => {
      this.#isGone = true;
    });
  }

  get #isTerminal(): boolean {
    return this.#options.stream.isTTY === true && !this.#isGone;
  }

  /** Called once a second by the observation, so that a hanging observer sends no watchdog pings. */
  tick(progress: () => Progress): void {
    const now = this.#options.monotonicSeconds();
    if (this.#begunAt === null) {
      this.#begunAt = now;
      this.#options.manager?.notify('READY=1');
    }
    const elapsed = now - this.#begunAt;
    if (this.#pingSeconds !== null && now >= this.#pingAt) {
      this.#pingAt = now + this.#pingSeconds;
      this.#ping();
    }
    if (this.#options.manager && now >= this.#statusAt) {
      this.#statusAt = now + STATUS_SECONDS;
      this.showStatus(statusLine(progress()));
    }
    if (this.#isTerminal) this.#draw(progress());
    else if (elapsed >= this.#lineAt) {
      this.#lineAt = elapsed + LINE_SECONDS - (elapsed % LINE_SECONDS);
      this.print(line(progress()));
    }
    if (elapsed >= this.#headAt) {
      this.#headAt += HEAD_SECONDS;
      const { entries, head } = progress();
      if (!this.#isTerminal) this.print(`record: ${entries} entries, head ${head}`);
    }
  }

  /** Prints a line above the block. */
  print(text: string): void {
    if (this.#isGone) return;
    this.#options.write(`${this.#erase()}${printable(text)}\n`);
  }

  /** Sets the line of `systemctl status`. */
  showStatus(status: string): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#options.manager?.notify(`STATUS=${printable(status)}`);
  }

  /** Sends watchdog pings until the work is done, because there are no ticks at the end of a run. */
  async pingDuring<T>(work: Promise<T>): Promise<T> {
    const pinging = setInterval(() => this.#ping(), PING_MS);
    return work.finally(() => clearInterval(pinging));
  }

  #ping(): void {
    this.#options.manager?.notify('WATCHDOG=1');
  }

  /** Leaves the last block on the terminal. */
  end(): void {
    this.#lines = 0;
  }

  #draw(progress: Progress): void {
    const { stream, write } = this.#options;
    // A terminal may report an unset size as 0.
    const lines = block(progress, stream.columns || DEFAULT_COLUMNS, true);
    write(`${this.#erase()}${lines.join('\n')}\n`);
    this.#lines = lines.length;
  }

  /** The sequence that erases the last block. */
  #erase(): string {
    const lines = this.#lines;
    this.#lines = 0;
    return lines > 0 ? `\x1b[${lines}A\x1b[0J` : '';
  }
}

/** The progress of a run. */
export interface Progress {
  readonly nodeName: string;
  readonly url: string;
  readonly folder: string;
  readonly plannedSeconds: number;
  readonly observedSeconds: number;
  readonly gapSeconds: number;
  /** Empty if not judged yet. */
  readonly judgements: readonly Judgement[];
  /** Restarts of the service since the run began. */
  readonly restarts: number;
  /** Severities of the open alerts, by metric. */
  readonly openAlerts: readonly { readonly severity: string; readonly metric: string }[];
  readonly entries: number;
  readonly head: string;
  /** Why entries of the record are not written; null if they are. */
  readonly problem: string | null;
}

function amount({ unit, value }: Pick<Quantity, 'unit' | 'value'>): string {
  if (value === null) return 'not known yet';
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 1 ? 3 : Math.abs(value) < 99 || Math.abs(value) > 1000 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}

const SIGNS = { '<': '<', '<=': '≤', '>': '>', '>=': '≥' } as const;

/** `99.98 % (> 99 %)` */
function measuredOf({ limit, measured }: Judgement): string {
  return `${amount(measured)} (${SIGNS[limit.comparison]} ${amount(limit)})`;
}

function timesOf({ gapSeconds, plannedSeconds, observedSeconds }: Progress): string {
  const [observed, planned, gaps] = [observedSeconds, plannedSeconds, gapSeconds].map((seconds) => formatDuration(seconds, 'h'));
  const left = formatDuration(Math.max(0, Math.ceil(plannedSeconds - observedSeconds)), 'h');
  // Rounded down, so that 100 % is shown only for a complete run.
  const percent = Math.min(100, Math.floor((observedSeconds / plannedSeconds) * 1000) / 10).toFixed(1);
  return `${observed} of ${planned} (${percent} %), ${left} to go${gapSeconds >= 1 ? `, monitoring gaps ${gaps}` : ''}`;
}

function restartsOf({ restarts }: Progress): string {
  return restarts === 0 ? 'no restarts' : counted(restarts, 'restart');
}

function alertsOf({ openAlerts }: Progress): string {
  if (openAlerts.length === 0) return 'no open alerts';
  return `open: ${openAlerts.map(({ metric, severity }) => `${severity} ${metric}`).join(', ')}`;
}

const COLOURS: Readonly<Record<string, string>> = { PASS: '32', FAIL: '31', INCOMPLETE: '33' };

/** The lines shown on a terminal. */
export function block(progress: Progress, columns: number, colours: boolean): string[] {
  const { entries, folder, head, judgements, nodeName, problem, url } = progress;
  const verdict = (word: string): string => (colours ? `\x1b[1;${COLOURS[word]}m${word.padEnd(11)}\x1b[0m` : word.padEnd(11));
  // Only plain text is truncated, so that each colour is reset.
  const fit = (text: string, used = 0): string => printable(text, Math.max(1, columns - used - 1));
  const rows = judgements.map((judgement) => {
    const title = judgement.title.padEnd(15);
    return `  ${title} ${verdict(judgement.verdict)} ${fit(measuredOf(judgement), 31)}`;
  });
  return [
    fit(`${nodeName} at ${url}: ${timesOf(progress)}`),
    ...(rows.length > 0 ? rows : [fit('  the criteria are judged after the first minute')]),
    fit(`  ${restartsOf(progress)}; ${alertsOf(progress)}`),
    fit(`  ${folder}: ${entries} entries, head ${head.slice(0, 16)}`),
    ...(problem === null ? [] : [fit(`  ${problem}`)]),
  ];
}

/** The same content in one line, for logs. */
export function line(progress: Progress): string {
  return inOneLine(progress, (judgement) => `${judgement.title} ${judgement.verdict} ${measuredOf(judgement)}`);
}

/** The same content in a shorter line for `systemctl status`. */
export function statusLine(progress: Progress): string {
  return inOneLine(progress, ({ title, verdict }) => `${title} ${verdict}`);
}

function inOneLine(progress: Progress, criterion: (judgement: Judgement) => string): string {
  const { judgements, problem } = progress;
  const parts = [timesOf(progress), ...judgements.map(criterion), restartsOf(progress), alertsOf(progress)];
  return [...parts, ...(problem === null ? [] : [problem])].join('; ');
}
