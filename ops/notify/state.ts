import { dirname } from 'node:path';
import * as v from 'valibot';
import { readIfThere, writeAtomically } from '../../src/core/files/atomic-file.ts';
import type { Log } from '../../src/core/ports.ts';
import { diskProblem, makeFolder } from '../lib/files.ts';
import { CHANNEL_NAMES } from './channels/channel.ts';
import type { Message } from './message.ts';
import { EMPTY_PLAN, planSchema } from './plan.ts';
import { EMPTY_QUEUE, queueSchema } from './queue.ts';

const stateSchema = v.object({
  version: v.literal(1),
  /** Number of the last notification. */
  number: v.number(),
  /** Id of the last alert change that `plan` includes. */
  cursor: v.nullable(v.string()),
  plan: planSchema,
  queues: v.object({ webhook: queueSchema, command: queueSchema, email: queueSchema }),
  /** Messages that are pending in any queue, by id. */
  messages: v.record(
    v.string(),
    v.custom<Message>((found) => v.is(v.looseObject({ id: v.string(), alerts: v.array(v.unknown()) }), found)),
  ),
});

/** The state that survives a restart. */
export type State = Readonly<v.InferOutput<typeof stateSchema>>;

export type StateChange = Partial<Omit<State, 'queues' | 'version'>> & { readonly queues?: Partial<State['queues']> };

export const EMPTY_STATE: State = {
  version: 1,
  number: 0,
  cursor: null,
  plan: EMPTY_PLAN,
  queues: { webhook: EMPTY_QUEUE, command: EMPTY_QUEUE, email: EMPTY_QUEUE },
  messages: {},
};

/** Deferrable changes are written after this long, and failed writes are retried. */
const LATER_MS = 60_000;

export function stateFile(dataFolder: string): string {
  return `${dataFolder}/ops/notifications.ndjson`;
}

/** The state after a change; messages that are no longer in a queue are removed. */
export function withChange(state: State, change: StateChange): State {
  const queues = { ...state.queues, ...change.queues };
  const pending = new Set(CHANNEL_NAMES.flatMap((name) => queues[name].pending.map(({ id }) => id)));
  const messages = Object.entries({ ...state.messages, ...change.messages }).filter(([id]) => pending.has(id));
  return { ...state, ...change, queues, messages: Object.fromEntries(messages) };
}

/** The state on disk, for readers. Rejects for a file that this version did not write. */
export async function readState(dataFolder: string): Promise<State> {
  return parseState((await readIfThere(stateFile(dataFolder))) ?? '');
}

export function parseState(text: string): State {
  return text === '' ? EMPTY_STATE : v.parse(stateSchema, JSON.parse(text));
}

/**
 * The state and its file. Each write replaces the whole file atomically, so that a kill or a power cut leaves the state either before or
 * after a change. While writes to the disk fail, the state is only in memory.
 */
export class StateFile {
  readonly #file: string;
  readonly #log: Log;
  #state: State;
  /** The state on disk. */
  #written: State;
  /** The write that has not started yet; it includes every change made until it starts. */
  #queued: Promise<void> | null = null;
  #last: Promise<void> = Promise.resolve();
  #later: NodeJS.Timeout | undefined;
  #isFailing = false;

  private constructor(file: string, log: Log, state: State) {
    this.#file = file;
    this.#log = log;
    this.#state = state;
    this.#written = state;
  }

  static async open(dataFolder: string, log: Log): Promise<StateFile> {
    const file = stateFile(dataFolder);
    let state = EMPTY_STATE;
    try {
      state = await readState(dataFolder);
    } catch (error) {
      log('error', 'notifications: saved state unreadable; open alerts are notified again', {
        file,
        error: diskProblem(error, dirname(file)) ?? (error as Error).message,
      });
    }
    return new StateFile(file, log, state);
  }

  get state(): State {
    return this.#state;
  }

  /** Applies a change at once; resolves when it is on disk or the write has failed. */
  save(change: StateChange): Promise<void> {
    this.#state = withChange(this.#state, change);
    return this.#write();
  }

  /**
   * Applies a change that would be received again after a kill. To reduce flash wear, it is written with the next
   * change, or within a minute.
   */
  note(change: StateChange): void {
    this.#state = withChange(this.#state, change);
    this.#writeLater();
  }

  /** Writes the state if it differs from the one on disk. */
  async flush(): Promise<void> {
    if (this.#state !== this.#written) await this.#write();
    await this.#last;
    this.#cancelLater();
  }

  #write(): Promise<void> {
    this.#queued ??= this.#last = this.#last.then(async () => {
      await new Promise(setImmediate); // Combines the changes of one turn into one write.
      this.#queued = null;
      this.#cancelLater();
      await this.#writeNow();
    });
    return this.#queued;
  }

  #writeLater(): void {
    this.#later ??= setTimeout(() => void this.#write(), LATER_MS).unref();
  }

  #cancelLater(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
  }

  async #writeNow(): Promise<void> {
    const state = this.#state;
    const folder = dirname(this.#file);
    try {
      await makeFolder(folder);
      await writeAtomically(this.#file, `${JSON.stringify(state)}\n`, { durable: true });
      this.#written = state;
      if (this.#isFailing) this.#log('notice', 'notifications: state saved to disk again');
      this.#isFailing = false;
    } catch (error) {
      const problem = diskProblem(error, folder) ?? (error as Error).message;
      if (!this.#isFailing)
        this.#log('error', 'notifications: state cannot be saved to disk; a restart would lose pending notifications', { error: problem });
      this.#isFailing = true;
      this.#writeLater();
    }
  }
}
