import type { Log } from '../../src/core/ports.ts';
import type { Channel, Result } from './channel.ts';
import { added, picked, type Queue, type Settled, settled } from './queue.ts';
import type { StateFile } from './state.ts';

export interface WorkerOptions {
  readonly channel: Channel;
  readonly file: StateFile;
  /** Notifications that are not on the disk yet: if sent before, they could be sent again with another id. */
  readonly unsaved: ReadonlySet<string>;
  readonly log: Log;
  readonly nowMs: () => number;
}

/** At the end, a delivery in progress may take this long. */
const LAST_MS = 3000;
/** Timers do not advance while a machine is suspended. */
const MAX_SLEEP_MS = 60_000;

/** Delivers the notifications of one queue one at a time, independently of other channels. */
export class QueueWorker {
  readonly channel: Channel;
  readonly #options: WorkerOptions;
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;
  #isStopped = false;

  constructor(options: WorkerOptions) {
    this.channel = options.channel;
    this.#options = options;
  }

  /** The queue with one more notification. */
  queueWith(id: string, bytes: number): Queue {
    return this.#withDropsLogged(added(this.#queue, id, bytes, this.#options.nowMs()));
  }

  /** Sends the next notification if one is due. */
  wake(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#sending) return;
    const { nowMs, unsaved } = this.#options;
    const waiting = this.#queue.waiting.filter(({ id }) => !unsaved.has(id));
    const next = picked({ ...this.#queue, waiting }, nowMs());
    if (!next) return;
    if ('atMs' in next) {
      this.#timer = setTimeout(() => this.wake(), Math.min(MAX_SLEEP_MS, Math.max(0, next.atMs - nowMs())));
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
    const cut = setTimeout(() => this.#ending.abort(new Error('ended with the scheduler')), LAST_MS);
    await this.#sending;
    clearTimeout(cut);
  }

  get #queue(): Queue {
    return this.#options.file.state.queues[this.channel.name];
  }

  async #send(id: string): Promise<void> {
    const { file, log, nowMs } = this.#options;
    const { name, target } = this.channel;
    const { dropped, failures } = this.#queue;
    const result = await this.#attempt(id, dropped);
    if (this.#ending.signal.aborted && result.kind !== 'delivered') return; // Not a failure of the receiver.
    const after = this.#withDropsLogged(settled(this.#queue, id, result, nowMs(), Math.random()));
    void file.save({ queues: { [name]: after } });
    const fields = { channel: name, target, id };
    if (result.kind === 'delivered') log(failures > 0 ? 'notice' : 'info', 'notification delivered', fields);
    else if (failures === 0) log('warning', `notification not delivered: ${result.detail}`, fields);
    else log('debug', `notification still not delivered: ${result.detail}`, { ...fields, failures: failures + 1 });
  }

  async #attempt(id: string, dropped: number): Promise<Result> {
    const message = this.#options.file.state.messages[id];
    if (!message) return { kind: 'final', detail: 'its message is missing' };
    if (dropped === 0) return this.channel.send(message, this.#ending.signal);
    const note = `${dropped} earlier notification${dropped === 1 ? '' : 's'} could not be delivered: see edge-health ops notify.`;
    return this.channel.send({ ...message, notes: [...message.notes, note] }, this.#ending.signal);
  }

  #withDropsLogged({ dropped, queue }: Settled): Queue {
    for (const { id, reason } of dropped) this.#options.log('error', `notification dropped: ${reason}`, { channel: this.channel.name, id });
    return queue;
  }
}
