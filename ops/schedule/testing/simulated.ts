import { mock } from 'node:test';
import type { Test } from 'tap';
import type { OpsDocument } from '../../../src/client/documents.ts';
import type { Config } from '../../../src/config/schema.ts';
import { DEFAULT_CONFIG } from '../../../src/config/schema.ts';
import type { Clocks } from '../../../src/core/time/time.ts';
import type { JobName } from '../../jobs.ts';
import type { Trigger } from '../../lib/job.ts';
import type { Runner, RunResult } from '../execution.ts';
import type { JobRecord, Run } from '../job-records.ts';
import { JobScheduler } from '../job-scheduler.ts';
import type { LeftRun } from '../manual-run.ts';
import { NEVER } from '../state.ts';

/** The clocks of a machine that can be suspended, and whose time can be set. */
export class SimulatedClocks implements Clocks {
  monotonicMs = 100_000;
  bootMs = 100_000;
  wallMs: number;

  constructor(wall: string) {
    this.wallMs = Date.parse(wall);
  }

  monotonicSeconds = (): number => this.monotonicMs / 1000;
  wallMilliseconds = (): number => this.wallMs;
  bootSeconds = (): number => this.bootMs / 1000;

  pass(ms: number): void {
    this.monotonicMs += ms;
    this.sleep(ms / 1000);
  }

  sleep(seconds: number): void {
    this.bootMs += seconds * 1000;
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

/** Lets settled promises take effect. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const RealDate = Date;

/**
 * A scheduler with node-cron on a simulated machine: Date is its wall clock, timers follow its monotonic clock. The state stays for the
 * next scheduler.
 */
export class SimulatedMachine {
  readonly clocks: SimulatedClocks;
  readonly log: string[] = [];
  readonly runs: { name: string; run: Run }[] = [];
  begun: Begun[] = [];
  readonly durable: OpsDocument[] = [];
  live: OpsDocument = NEVER;
  inbox: LeftRun[] = [];
  /** Runs end at once with this result; null: when a test ends them. */
  result: RunResult | 'busy' | null = { status: 'OK', lines: ['OK  done'] };
  config: Config['ops'] = DEFAULT_CONFIG.ops;
  #scheduler: JobScheduler | null = null;

  constructor(t: Test, wall: string, config: Partial<Config['ops']> = {}) {
    this.clocks = new SimulatedClocks(wall);
    this.config = { ...this.config, timezone: 'UTC', ...config };
    const { clocks } = this;
    globalThis.Date = class extends RealDate {
      constructor(...values: []) {
        super(...((values.length === 0 ? [clocks.wallMs] : values) as []));
      }
      static override now = (): number => clocks.wallMs;
    } as DateConstructor;
    t.teardown(() => {
      globalThis.Date = RealDate;
      mock.timers.reset();
    });
  }

  get scheduler(): JobScheduler {
    if (!this.#scheduler) throw new Error('no scheduler was started');
    return this.#scheduler;
  }

  /** A new scheduler, as after a kill, or after a reboot, which keeps only what was on the disk. */
  start(after: 'reboot' | 'kill' = 'kill'): JobScheduler {
    mock.timers.reset();
    mock.timers.enable({ apis: ['setTimeout'] });
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
        if (this.result !== null) resolve(this.result);
      });
    this.#scheduler = new JobScheduler({
      config: this.config,
      clocks: this.clocks,
      log: (level, message, fields = {}) => void this.log.push(`${level} ${message} ${fields['job'] ?? ''}`.trim()),
      runner,
      state: {
        load: () => structuredClone(left),
        saveLive: (document) => {
          this.live = structuredClone(document);
        },
        saveDurable: async (document) => void this.durable.push(structuredClone(document)),
      },
      takeRuns: () => this.inbox.splice(0),
      onRun: (name, run) => void this.runs.push({ name, run }),
      onBeat: () => undefined,
      beatSeconds: 15,
    });
    this.#scheduler.start();
    return this.#scheduler;
  }

  /** Advances the time in steps that end just before and at each multiple of `stepSeconds` on the wall clock. */
  async run(seconds: number, stepSeconds = 1): Promise<void> {
    const endMs = this.clocks.monotonicMs + seconds * 1000;
    const stepMs = stepSeconds * 1000;
    await settle();
    while (this.clocks.monotonicMs < endMs) {
      const leftMs = stepMs - (this.clocks.wallMs % stepMs);
      const ms = Math.min(leftMs > 100 ? leftMs - 100 : leftMs, endMs - this.clocks.monotonicMs);
      this.clocks.pass(ms);
      mock.timers.tick(ms);
      if (leftMs <= 100) await settle();
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
