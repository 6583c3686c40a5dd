import type { Log } from '../../src/core/ports.ts';
import type { Message } from './message.ts';
import { picked, type Queue, type Result } from './queue.ts';
import type { Sender } from './sender.ts';

/** The queue of a channel and its messages. */
export interface Outbox {
  queue(): Queue;
  message(id: string): Message | undefined;
  settle(id: string, result: Result): void;
}

/** At the end, a delivery in progress may take this long. */
const LAST_MS = 3000;
/** Timers do not advance while a machine is suspended. */
const MAX_SLEEP_MS = 60_000;

/** Delivers the notifications of one queue one at a time, independently of other channels. */
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

  /** Sends the next notification if one is due. */
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

  /** A delivery that is cut off is sent again after the next start, with the same id. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    if (!this.#sending) return;
    const cut = setTimeout(() => this.#ending.abort(new Error('ended with the scheduler')), LAST_MS);
    await this.#sending;
    clearTimeout(cut);
  }

  async #send(id: string): Promise<void> {
    const { dropped, failures } = this.#outbox.queue();
    const message = this.#outbox.message(id);
    if (!message) return this.#outbox.settle(id, { kind: 'final', detail: 'its message is missing' });
    const note = `${dropped} earlier notification${dropped === 1 ? '' : 's'} could not be delivered: see edge-health ops notify.`;
    const whole = dropped > 0 ? { ...message, notes: [...message.notes, note] } : message;
    const result = await this.#sender
      .send(whole, this.#ending.signal)
      .catch((error: Error): Result => ({ kind: 'retry', detail: error.stack ?? error.message }));
    if (this.#ending.signal.aborted && result.kind !== 'delivered') return; // Not a failure of the receiver.
    this.#outbox.settle(id, result);
    const fields = { channel: this.#sender.name, target: this.#sender.target, id };
    if (result.kind === 'delivered') this.#log(failures > 0 ? 'notice' : 'info', 'notification delivered', fields);
    else if (failures === 0) this.#log('warning', `notification not delivered: ${result.detail}`, fields);
    else this.#log('debug', `notification still not delivered: ${result.detail}`, { ...fields, failures: failures + 1 });
  }
}
