/** A link of a test network that loses, duplicates, delays or blocks frames; implemented by testkit/dds/peers/lossy-link.c. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from '../dds/native.ts';

/** Number of frames in one direction. Each received frame was forwarded (twice if duplicated), lost, paused or failed, or is being held. */
export interface LinkCounters {
  readonly received: number;
  readonly forwarded: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  /** Dropped during a pause. */
  readonly paused: number;
  /** Could not be sent. */
  readonly failed: number;
  /** Arrived faster than they could be read. */
  readonly missed: number;
}

export interface LinkState {
  readonly paused: boolean;
  /** Direction from the host to the segment. */
  readonly forth: LinkCounters;
  readonly back: LinkCounters;
}

export interface LinkFaults {
  readonly lossPercent?: number;
  readonly duplicatePercent?: number;
  /** Percentage of the frames that are held for `holdMs`, so that later frames overtake them. */
  readonly reorderPercent?: number;
  readonly holdMs?: number;
}

const SETTINGS = { lossPercent: 'loss', duplicatePercent: 'duplicate', reorderPercent: 'reorder', holdMs: 'hold' } as const;

/** The link between two interfaces of a namespace; it ends with its namespace. */
export class LossyLink {
  readonly #process: ChildProcess;
  readonly #responses: AsyncIterator<string>;
  #queue: Promise<unknown> = Promise.resolve();
  #errors = '';

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    process.stdin?.on('error', () => {});
    this.#responses = createInterface({ input: process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  /** Resolves when the link forwards frames. */
  static async start(namespace: string, first: string, second: string, seed: number): Promise<LossyLink> {
    const program = join(await build('lossy-link'), 'lossy-link');
    const link = new LossyLink(spawn('ip', ['netns', 'exec', namespace, program, first, second, String(seed)]));
    await link.#readResponse();
    return link;
  }

  set(faults: LinkFaults): Promise<LinkState> {
    const commands = Object.entries(SETTINGS).flatMap(([key, name]) => {
      const value = faults[key as keyof LinkFaults];
      return value === undefined ? [] : [`set ${name} ${value}`];
    });
    return this.#execute(...commands, 'stats');
  }

  /** Drops every frame until `resume`. */
  pause(): Promise<LinkState> {
    return this.#execute('pause');
  }

  resume(): Promise<LinkState> {
    return this.#execute('resume');
  }

  state(): Promise<LinkState> {
    return this.#execute('stats');
  }

  /** Sends commands in order, after those in progress; resolves with the response to the last one. */
  #execute(...commands: string[]): Promise<LinkState> {
    const executed = this.#queue.then(async () => {
      let state = await this.#send(commands[0] as string);
      for (const command of commands.slice(1)) state = await this.#send(command);
      return state;
    });
    this.#queue = executed.catch(() => {});
    return executed;
  }

  #send(command: string): Promise<LinkState> {
    this.#process.stdin?.write(`${command}\n`);
    return this.#readResponse();
  }

  async #readResponse(): Promise<LinkState> {
    const { value, done } = await this.#responses.next();
    if (done) throw new Error(`the lossy link has ended: ${this.#errors}`);
    const response = JSON.parse(value) as LinkState & { readonly error?: string };
    if (response.error) throw new Error(response.error);
    return response;
  }
}
