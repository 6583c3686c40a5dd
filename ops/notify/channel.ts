import type { Log } from '../../src/core/ports.ts';
import type { Message } from './message.ts';
import { picked, type Queue, type Result } from './queue.ts';
import type { Sender } from './sender.ts';

/** What a channel works on. */
export interface Outbox {
  queue(): Queue;
  message(id: string): Message | undefined;
  settle(id: string, result: Result): void;
}

/** How long a delivery under way is waited for at the end. */
const LAST_MS = 3000;
/** Timers stand still while a machine sleeps. */
const MAX_SLEEP_MS = 60_000;

/** Delivers what waits in one queue, one at a time, in its own time: no other channel waits for it. */
export class Channel {
  readonly #sender: Sender;
  readonly #outbox: Outbox;
  readonly #log: Log;
  readonly #nowMs: () => number;
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;
  #isStopped = false;

  constructor(sender: Sender, outbox: Outbox, log: Log, nowMs: () => number) {
    this.#sender = sender;
    this.#outbox = outbox;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Looks whether there is something to send. */
  wake(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#sending) return;
    const next = picked(this.#outbox.queue(), this.#nowMs());
    if (!next) return;
    if ('atMs' in next) {
      this.#timer = setTimeout(() => this.wake(), Math.min(MAX_SLEEP_MS, Math.max(0, next.atMs - this.#nowMs())));
      return;
    }
    this.#sending = this.#send(next.entry.id).finally(() => {
      this.#sending = null;
      setImmediate(() => this.wake());
    });
  }

  /** What is under way may come to its end; otherwise it is sent again after the next start, with the same id. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    if (!this.#sending) return;
    const cut = setTimeout(() => this.#ending.abort(new Error('ended with the scheduler')), LAST_MS);
    await this.#sending;
    clearTimeout(cut);
  }

  async #send(id: string): Promise<void> {
    const { failures, givenUp } = this.#outbox.queue();
    const message = this.#outbox.message(id);
    if (!message) return this.#outbox.settle(id, { kind: 'final', detail: 'its text is lost' });
    const note = `${givenUp} earlier notification${givenUp === 1 ? '' : 's'} could not be delivered and will not come: see edge-health ops notify.`;
    const whole = givenUp > 0 ? { ...message, notes: [...message.notes, note] } : message;
    const result = await this.#sender
      .send(whole, this.#ending.signal)
      .catch((error: Error): Result => ({ kind: 'retry', detail: error.stack ?? error.message }));
    if (this.#ending.signal.aborted && result.kind !== 'delivered') return; // No failure of the receiver's.
    this.#outbox.settle(id, result);
    const fields = { channel: this.#sender.name, target: this.#sender.target, id };
    if (result.kind === 'delivered') this.#log(failures > 0 ? 'notice' : 'info', 'notification delivered', fields);
    else if (failures === 0) this.#log('warning', `notification not delivered: ${result.detail}`, fields);
    else this.#log('debug', `notification still not delivered: ${result.detail}`, { ...fields, failures: failures + 1 });
  }
}
