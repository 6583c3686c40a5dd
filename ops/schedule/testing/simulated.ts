import type { Config } from '../../../src/config/schema.ts';
import { DEFAULT_CONFIG } from '../../../src/config/schema.ts';
import type { Clocks } from '../../../src/core/time.ts';
import type { OpsDocument } from '../../../src/http/api/ops-schema.ts';
import type { Trigger } from '../../lib/job.ts';
import type { LeftRun } from '../inbox.ts';
import { JOB_NAMES, type JobName, type JobRecord, type Run } from '../jobs.ts';
import type { Runner, RunResult } from '../runners.ts';
import { Scheduler } from '../scheduler.ts';
import { NEVER } from '../state.ts';

/** The clocks of a machine that sleeps, and whose time somebody sets. */
export class SimulatedClocks implements Clocks {
  monotonic = 100;
  boot = 100;
  wallMs: number;

  constructor(wall: string) {
    this.wallMs = Date.parse(wall);
  }

  monotonicSeconds = (): number => this.monotonic;
  wallMilliseconds = (): number => this.wallMs;
  bootSeconds = (): number => this.boot;

  pass(seconds: number): void {
    this.monotonic += seconds;
    this.boot += seconds;
    this.wallMs += seconds * 1000;
  }

  sleep(seconds: number): void {
    this.boot += seconds;
    this.wallMs += seconds * 1000;
  }

  set(wall: string): void {
    this.wallMs = Date.parse(wall);
  }
}

export interface Begun {
  readonly name: JobName;
  readonly trigger: Trigger;
  readonly at: string;
  readonly signal: AbortSignal;
  end(result?: RunResult | 'busy'): Promise<void>;
}

/** Lets what was resolved have its effects. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A scheduler on a simulated machine. What it left stays, also for the next one. */
export class SimulatedMachine {
  readonly clocks: SimulatedClocks;
  readonly log: string[] = [];
  readonly runs: { name: string; run: Run }[] = [];
  begun: Begun[] = [];
  readonly #all: Begun[] = [];
  readonly durable: OpsDocument[] = [];
  live: OpsDocument = NEVER;
  inbox: LeftRun[] = [];
  /** Runs end at once, with this; null: when a test ends them. */
  result: RunResult | 'busy' | null = { status: 'OK', lines: ['OK  done'] };
  config: Config['ops'] = DEFAULT_CONFIG.ops;
  #scheduler: Scheduler | null = null;

  constructor(wall: string, config: Partial<Config['ops']> = {}) {
    this.clocks = new SimulatedClocks(wall);
    this.config = { ...this.config, timezone: 'UTC', ...config };
  }

  get scheduler(): Scheduler {
    if (!this.#scheduler) throw new Error('no scheduler was started');
    return this.#scheduler;
  }

  /** A new scheduler, as after a reboot (then only what was on the disk is there) or a kill. */
  start(after: 'reboot' | 'kill' = 'kill', graceSeconds = 10): Scheduler {
    const left = after === 'kill' && this.live.scheduler.state !== 'never' ? this.live : (this.durable.at(-1) ?? NEVER);
    const runner: Runner = (name, trigger, signal) =>
      new Promise((resolve) => {
        const one: Begun = {
          name,
          trigger,
          at: new Date(this.clocks.wallMs).toISOString(),
          signal,
          end: async (result = { status: 'OK', lines: [] }) => {
            resolve(result);
            await settle();
          },
        };
        this.begun.push(one);
        this.#all.push(one);
        if (this.result !== null) resolve(this.result);
      });
    this.#scheduler = new Scheduler({
      config: this.config,
      clocks: this.clocks,
      log: (level, message, fields = {}) => void this.log.push(`${level} ${message} ${fields['job'] ?? ''}`.trim()),
      runners: Object.fromEntries(JOB_NAMES.map((name) => [name, runner])) as Record<JobName, Runner>,
      state: {
        load: () => structuredClone(left),
        saveLive: (document) => {
          this.live = structuredClone(document);
        },
        saveDurable: async (document) => void this.durable.push(structuredClone(document)),
      },
      takeRuns: () => this.inbox.splice(0),
      notifications: () => null,
      onRun: (name, run) => void this.runs.push({ name, run }),
      graceSeconds,
      catchUpAfterSeconds: 10,
    });
    this.#scheduler.start();
    return this.#scheduler;
  }

  /** Also the runs of schedulers that were killed, of which deadlines would go on. */
  async endAll(): Promise<void> {
    for (const one of this.#all) await one.end();
  }

  /** Obeys the scheduler for so long, as its timer does. */
  async run(seconds: number): Promise<void> {
    const end = this.clocks.monotonic + seconds;
    await settle();
    while (this.clocks.monotonic < end) {
      this.clocks.pass(Math.min(this.scheduler.nextBeatMilliseconds() / 1000, end - this.clocks.monotonic));
      this.scheduler.beat();
      await settle();
    }
  }

  job(name: JobName): JobRecord {
    return this.live.jobs.find((job) => job.name === name) as JobRecord;
  }

  /** The runs begun since the last call, as `name trigger time`. */
  took(...names: readonly JobName[]): string[] {
    const taken = this.begun.filter(({ name }) => names.length === 0 || names.includes(name));
    this.begun = this.begun.filter((one) => !taken.includes(one));
    return taken.map(({ at, name, trigger }) => `${name} ${trigger} ${at.slice(0, 19)}`);
  }
}
