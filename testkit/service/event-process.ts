import type { ChildProcess } from 'node:child_process';

/** An event that a program prints: one line of JSON on its standard output. `Events`: the members of each kind. */
export type EventRecord<Events extends object, Kind extends keyof Events = keyof Events> = {
  [K in Kind]: { readonly event: K; readonly wall_ms: number } & Events[K];
}[Kind];

/** How a process ended: exit code or name of the signal. */
export type ProcessEnd = number | string;

/** A process that prints events as lines of JSON on its standard output. */
export class EventProcess<Events extends object> {
  /** All events, in order. */
  readonly events: EventRecord<Events>[] = [];
  readonly ended: Promise<ProcessEnd>;
  protected readonly process: ChildProcess;
  /** Name of the process in error messages. */
  readonly #title: string;
  readonly #timeoutSeconds: number;
  readonly #waiting = new Set<() => void>();
  #end: ProcessEnd | null = null;
  #stderr = '';

  /** `process` has pipes for its output; `timeoutSeconds`: default timeout of the wait methods. */
  protected constructor(process: ChildProcess, title: string, timeoutSeconds: number) {
    this.process = process;
    this.#title = title;
    this.#timeoutSeconds = timeoutSeconds;
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    let rest = '';
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.events.push(JSON.parse(line) as EventRecord<Events>);
      this.#notify();
    });
    this.ended = new Promise((resolve) => {
      process.once('close', (code, signal) => {
        this.#end = code ?? signal ?? -1;
        this.#notify();
        resolve(this.#end);
      });
    });
  }

  get pid(): number {
    return this.process.pid as number;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /** All received events of a kind. */
  all<Kind extends keyof Events>(kind: Kind): EventRecord<Events, Kind>[] {
    return this.events.filter(({ event }) => event === kind) as unknown as EventRecord<Events, Kind>[];
  }

  /** Resolves with the first event of the kind that satisfies the condition, including earlier events; throws after the timeout. */
  async waitFor<Kind extends keyof Events>(
    kind: Kind,
    satisfied: (event: EventRecord<Events, Kind>) => boolean = () => true,
    seconds = this.#timeoutSeconds,
  ): Promise<EventRecord<Events, Kind>> {
    const [found] = await this.waitForCount(kind, 1, satisfied, seconds);
    return found as EventRecord<Events, Kind>;
  }

  /** Like waitFor, for the first `count` such events. */
  async waitForCount<Kind extends keyof Events>(
    kind: Kind,
    count: number,
    satisfied: (event: EventRecord<Events, Kind>) => boolean = () => true,
    seconds = this.#timeoutSeconds,
  ): Promise<EventRecord<Events, Kind>[]> {
    const deadline = Date.now() + seconds * 1000;
    const found: EventRecord<Events, Kind>[] = [];
    for (let seen = 0; ; ) {
      for (; seen < this.events.length && found.length < count; seen += 1) {
        const event = this.events[seen] as unknown as EventRecord<Events, Kind>;
        if (event.event === kind && satisfied(event)) found.push(event);
      }
      if (found.length >= count) return found;
      const left = deadline - Date.now();
      if (left <= 0 || this.#end !== null) {
        const why = this.#end === null ? `in ${seconds} s` : `before it ended (${this.#end})`;
        throw new Error(`${found.length} of ${count} "${String(kind)}" events that satisfy ${why}\n${this.describe()}`);
      }
      await this.#waitForChange(left);
    }
  }

  /** Sends a signal without waiting for its effect. */
  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** The last events and standard error, for error messages. */
  protected describe(): string {
    const last = this.events.slice(-10).map((event) => JSON.stringify(event).slice(0, 300));
    return [this.#title, ...last, this.#stderr.slice(-2000)].join('\n');
  }

  /** Resolves at the next event, at the end of the process, or after `ms`. */
  #waitForChange(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiting.add(done);
    });
  }

  #notify(): void {
    for (const check of [...this.#waiting]) check();
  }
}
