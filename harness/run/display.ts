import type { ServiceManager } from '../../src/core/supervision.ts';
import { printable } from '../../src/core/text.ts';
import { block, line, type Standing, statusLine } from './progress.ts';

/** Elsewhere than on a terminal a line comes after the first minute, and then this often. */
const FIRST_LINE_SECONDS = 60;
const LINE_SECONDS = 600;
const HEAD_SECONDS = 3600;
const STATUS_SECONDS = 10;
/** Pings within one watchdog time: two may come late. */
const PINGS = 4;
const USUAL_COLUMNS = 80;

export interface DisplayOptions {
  readonly stream: NodeJS.WriteStream;
  readonly manager: ServiceManager | null;
  readonly watchdogSeconds: number | null;
  readonly monotonicSeconds: () => number;
}

/** Shows how a run gets on: a block that is drawn again each second, or a line now and then; and to the service manager. */
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
    // A terminal that was closed: the run goes on without.
    options.stream.on('error', () => {
      this.#isGone = true;
    });
  }

  get isLive(): boolean {
    return this.#options.stream.isTTY === true && !this.#isGone;
  }

  /** Called once a second by what watches, so that a watcher that hangs pings no longer. */
  beat(standing: () => Standing): void {
    const now = this.#options.monotonicSeconds();
    if (this.#begunAt === null) {
      this.#begunAt = now;
      this.#options.manager?.notify('READY=1');
    }
    const elapsed = now - this.#begunAt;
    if (this.#pingSeconds !== null && now >= this.#pingAt) {
      this.#pingAt = now + this.#pingSeconds;
      this.#options.manager?.notify('WATCHDOG=1');
    }
    if (this.#options.manager && now >= this.#statusAt) {
      this.#statusAt = now + STATUS_SECONDS;
      this.tell(statusLine(standing()));
    }
    if (this.isLive) this.#draw(standing());
    else if (elapsed >= this.#lineAt) {
      this.#lineAt = elapsed + LINE_SECONDS - (elapsed % LINE_SECONDS);
      this.say(line(standing()));
    }
    if (elapsed >= this.#headAt) {
      this.#headAt += HEAD_SECONDS;
      const { entries, head } = standing();
      if (!this.isLive) this.say(`record: ${entries} entries, head ${head}`);
    }
  }

  /** A line that stays. */
  say(text: string): void {
    if (this.#isGone) return;
    this.#erase();
    this.#options.stream.write(`${printable(text)}\n`);
  }

  /** What `systemctl status` shows. */
  tell(status: string): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#options.manager?.notify(`STATUS=${printable(status)}`);
  }

  /** Keeps the service manager patient while the run is brought to its end. */
  keepAlive(): void {
    this.#options.manager?.notify('WATCHDOG=1');
  }

  /** Leaves the last block as it is. */
  end(): void {
    this.#lines = 0;
  }

  #draw(standing: Standing): void {
    const { stream } = this.#options;
    // A terminal whose size was never set says 0.
    const lines = block(standing, stream.columns || USUAL_COLUMNS, true);
    this.#erase();
    stream.write(`${lines.join('\n')}\n`);
    this.#lines = lines.length;
  }

  #erase(): void {
    if (this.#lines > 0) this.#options.stream.write(`\x1b[${this.#lines}A\x1b[0J`);
    this.#lines = 0;
  }
}
