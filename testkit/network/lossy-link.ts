/** A link of a test network that loses, duplicates, delays or stops frames as the test sets it; a program in C does it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from '../dds/native.ts';

/** Frames of one direction. Every one received was either forwarded (once more when duplicated), lost, paused or failed, or is held back. */
export interface LinkCounters {
  readonly received: number;
  readonly forwarded: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  /** Dropped in a pause. */
  readonly paused: number;
  /** Could not be sent on. */
  readonly failed: number;
  /** Came faster than they could be read. */
  readonly missed: number;
}

export interface LinkState {
  readonly paused: boolean;
  /** From the host to the segment. */
  readonly forth: LinkCounters;
  readonly back: LinkCounters;
}

export interface LinkFaults {
  readonly lossPercent?: number;
  readonly duplicatePercent?: number;
  /** Share of the frames that are held back for `holdMs`, so that later ones overtake them. */
  readonly reorderPercent?: number;
  readonly holdMs?: number;
}

const SETTINGS = { lossPercent: 'loss', duplicatePercent: 'duplicate', reorderPercent: 'reorder', holdMs: 'hold' } as const;

/** The wire between two interfaces of a namespace; see testkit/dds/peers/lossy-link.c. It ends with its namespace. */
export class LossyLink {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  #turn: Promise<unknown> = Promise.resolve();
  #errors = '';

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    process.stdin?.on('error', () => {});
    this.#answers = createInterface({ input: process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  /** Resolves when frames pass. */
  static async start(namespace: string, first: string, second: string, seed: number): Promise<LossyLink> {
    const program = join(await build('lossy-link'), 'lossy-link');
    const link = new LossyLink(spawn('ip', ['netns', 'exec', namespace, program, first, second, String(seed)]));
    await link.#answer();
    return link;
  }

  set(faults: LinkFaults): Promise<LinkState> {
    const commands = Object.entries(SETTINGS).flatMap(([key, name]) => {
      const value = faults[key as keyof LinkFaults];
      return value === undefined ? [] : [`set ${name} ${value}`];
    });
    return this.#ask(...commands, 'stats');
  }

  /** Nothing passes until `resume`. */
  pause(): Promise<LinkState> {
    return this.#ask('pause');
  }

  resume(): Promise<LinkState> {
    return this.#ask('resume');
  }

  state(): Promise<LinkState> {
    return this.#ask('stats');
  }

  /** The answer to the last command; questions are asked in turn. */
  #ask(...commands: string[]): Promise<LinkState> {
    const answered = this.#turn.then(async () => {
      let state = await this.#answerTo(commands[0] as string);
      for (const command of commands.slice(1)) state = await this.#answerTo(command);
      return state;
    });
    this.#turn = answered.catch(() => {});
    return answered;
  }

  #answerTo(command: string): Promise<LinkState> {
    this.#process.stdin?.write(`${command}\n`);
    return this.#answer();
  }

  async #answer(): Promise<LinkState> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`the lossy link has ended: ${this.#errors}`);
    const answer = JSON.parse(value) as LinkState & { readonly error?: string };
    if (answer.error) throw new Error(answer.error);
    return answer;
  }
}
