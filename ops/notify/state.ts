import { dirname } from 'node:path';
import * as v from 'valibot';
import { readIfThere, writeAtomically } from '../../src/core/files/atomic-file.ts';
import { systemClocks } from '../../src/core/platform/clocks.ts';
import type { Log } from '../../src/core/ports.ts';
import { corrected } from '../../src/core/time/clock-watch.ts';
import type { Clocks } from '../../src/core/time/time.ts';
import { type ClockMark, clockMarkSchema, correctionSince, markClocks } from '../lib/clock-mark.ts';
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

const fileSchema = v.object({
  ...stateSchema.entries,
  /** The clocks when it was written. */
  clock: v.optional(v.nullable(clockMarkSchema), null),
});

/** A time before this comes from a clock that was never set. */
const EARLIEST_MS = Date.UTC(2020, 0);

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

/** The state with each past time replaced, and the times of the next attempts, which are in the future, moved. */
function withTimes(state: State, change: (ms: number) => number, moveMs: number): State {
  const orNull = (ms: number | null): number | null => (ms === null ? null : change(ms));
  const queues = CHANNEL_NAMES.map((name) => {
    const queue = state.queues[name];
    const { last, lastSuccessMs } = queue;
    return {
      ...queue,
      pending: queue.pending.map((entry) => ({ ...entry, createdMs: change(entry.createdMs), nextMs: entry.nextMs + moveMs })),
      lastSuccessMs: orNull(lastSuccessMs),
      last: last && { ...last, ms: change(last.ms) },
    };
  });
  const subjects = Object.entries(state.plan.subjects).map(([key, subject]) => {
    const pending = subject.pending && { ...subject.pending, firstMs: change(subject.pending.firstMs) };
    return [key, { ...subject, pending }] as const;
  });
  return {
    ...state,
    plan: { subjects: Object.fromEntries(subjects), sentMs: state.plan.sentMs.map(change) },
    queues: Object.fromEntries(CHANNEL_NAMES.map((name, i) => [name, queues[i]])) as State['queues'],
  };
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
  readonly #clocks: Pick<Clocks, 'bootSeconds' | 'wallMilliseconds'>;
  /** The clocks by which the times of the state are right. */
  #clock: ClockMark;

  private constructor(file: string, log: Log, state: State, clocks: Pick<Clocks, 'bootSeconds' | 'wallMilliseconds'>) {
    this.#file = file;
    this.#log = log;
    this.#state = state;
    this.#written = state;
    this.#clocks = clocks;
    this.#clock = markClocks(clocks);
  }

  static async open(
    dataFolder: string,
    log: Log,
    clocks: Pick<Clocks, 'bootSeconds' | 'wallMilliseconds'> = systemClocks(),
  ): Promise<StateFile> {
    const file = stateFile(dataFolder);
    let state = EMPTY_STATE;
    let clock: ClockMark | null = null;
    try {
      const text = (await readIfThere(file)) ?? '';
      state = parseState(text);
      if (text !== '') ({ clock } = v.parse(fileSchema, JSON.parse(text)));
    } catch (error) {
      log('error', 'notifications: saved state unreadable; open alerts are notified again', {
        file,
        error: diskProblem(error, dirname(file)) ?? (error as Error).message,
      });
    }
    const opened = new StateFile(file, log, state, clocks);
    const { boot_id, wall_ms } = opened.#clock;
    if (clock !== null && clock.boot_id === boot_id) {
      opened.#clock = clock;
      opened.nowMs();
    } else opened.#state = withTimes(state, (ms) => (ms < EARLIEST_MS ? wall_ms : ms), 0);
    return opened;
  }

  /** The wall clock. If it has stepped, first corrects the times of the state, so that ages are as if it had not. Call it before `state`. */
  nowMs(): number {
    const now = markClocks(this.#clocks, this.#clock.boot_id);
    const correction = correctionSince(this.#clock, now);
    this.#clock = now;
    if (correction) this.note(withTimes(this.#state, (ms) => corrected(ms, correction), correction.deltaMs));
    return now.wall_ms;
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
      await writeAtomically(this.#file, `${JSON.stringify({ ...state, clock: this.#clock })}\n`, { durable: true });
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
