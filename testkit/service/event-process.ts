import type { ChildProcess } from 'node:child_process';

/** An event of a program as it tells it: one JSON object a line on its standard output. `Events`: what each kind holds. */
export type ToldEvent<Events extends object, Kind extends keyof Events = keyof Events> = {
  [K in Kind]: { readonly event: K; readonly wall_ms: number } & Events[K];
}[Kind];

/** What ended a process: the exit code, or the signal's name. */
export type ProcessEnd = number | string;

/** A process that tells events as lines of JSON on its standard output. */
export class EventProcess<Events extends object> {
  /** All that were told, in their order. */
  readonly events: ToldEvent<Events>[] = [];
  readonly ended: Promise<ProcessEnd>;
  protected readonly process: ChildProcess;
  /** What it is called in errors. */
  readonly #title: string;
  readonly #patienceSeconds: number;
  readonly #watchers = new Set<() => void>();
  #end: ProcessEnd | null = null;
  #stderr = '';

  /** `process` has pipes for what it says; `patienceSeconds`: how long events are waited for where nothing else is asked. */
  protected constructor(process: ChildProcess, title: string, patienceSeconds: number) {
    this.process = process;
    this.#title = title;
    this.#patienceSeconds = patienceSeconds;
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    let rest = '';
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.events.push(JSON.parse(line) as ToldEvent<Events>);
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

  /** The events of a kind so far. */
  all<Kind extends keyof Events>(kind: Kind): ToldEvent<Events, Kind>[] {
    return this.events.filter(({ event }) => event === kind) as unknown as ToldEvent<Events, Kind>[];
  }

  /** The first event of the kind that satisfies, of those that were and those to come; throws when there is none in time. */
  async waitFor<Kind extends keyof Events>(
    kind: Kind,
    satisfied: (event: ToldEvent<Events, Kind>) => boolean = () => true,
    seconds = this.#patienceSeconds,
  ): Promise<ToldEvent<Events, Kind>> {
    const [found] = await this.waitForCount(kind, 1, satisfied, seconds);
    return found as ToldEvent<Events, Kind>;
  }

  /** The same for the first `count` such events. */
  async waitForCount<Kind extends keyof Events>(
    kind: Kind,
    count: number,
    satisfied: (event: ToldEvent<Events, Kind>) => boolean = () => true,
    seconds = this.#patienceSeconds,
  ): Promise<ToldEvent<Events, Kind>[]> {
    const deadline = Date.now() + seconds * 1000;
    const found: ToldEvent<Events, Kind>[] = [];
    for (let seen = 0; ; ) {
      for (; seen < this.events.length && found.length < count; seen += 1) {
        const event = this.events[seen] as unknown as ToldEvent<Events, Kind>;
        if (event.event === kind && satisfied(event)) found.push(event);
      }
      if (found.length >= count) return found;
      const left = deadline - Date.now();
      if (left <= 0 || this.#end !== null) {
        const why = this.#end === null ? `in ${seconds} s` : `before it ended (${this.#end})`;
        throw new Error(`${found.length} of ${count} "${String(kind)}" events that satisfy ${why}\n${this.account()}`);
      }
      await this.#change(left);
    }
  }

  /** Sends a signal, and waits for nothing: SIGSTOP and SIGCONT freeze and thaw it. */
  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** What it told last, for an error. */
  protected account(): string {
    const last = this.events.slice(-10).map((event) => JSON.stringify(event).slice(0, 300));
    return [this.#title, ...last, this.#stderr.slice(-2000)].join('\n');
  }

  /** Resolves when something was told, when it ended, or after that time. */
  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#watchers.add(done);
    });
  }

  #notify(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}
