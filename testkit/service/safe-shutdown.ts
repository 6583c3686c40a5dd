/** The safe shutdown with the real store, real hooks, a systemctl that records its calls, and a machine that is never powered off. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { systemClocks } from '../../src/core/platform/clocks.ts';
import type { LogLevel } from '../../src/core/ports.ts';
import type {
  DdsCaller,
  PowerControl,
  ShutdownAction,
  ShutdownCall,
  ShutdownCaller,
  ShutdownContext,
  ShutdownProgress,
  ShutdownReason,
  ShutdownRecord,
  ShutdownReply,
} from '../../src/core/shutdown/shutdown.ts';
import { type FindUsers, machineRunners } from '../../src/shutdown/callers.ts';
import { SafeShutdown } from '../../src/shutdown/safe-shutdown.ts';
import type { ShutdownSettings } from '../../src/shutdown/settings.ts';
import type { LocalUser } from '../../src/shutdown/users.ts';
import { TestStore } from '../../src/store/testing/store.ts';
import { temporaryFolder } from '../folder.ts';
import { until } from '../wait.ts';

/** Default timeout of calls: the maximum allowed, which no test reaches. */
export const TIMEOUT_SECONDS = 300;

/** A caller over DDS; by default a program of the local user robot, which is authorised. */
export function caller({
  mayBeForAnother = false,
  ...dds
}: Partial<DdsCaller> & { readonly mayBeForAnother?: boolean } = {}): ShutdownCaller {
  const local = {
    address: '127.0.0.1',
    port: 40_000,
    local: true,
    receivingPorts: [7410, 7411],
    prove: async () => true,
    isNew: () => true,
  };
  return { dds: { ...local, ...dds }, mayBeForAnother: () => mayBeForAnother };
}

export const LOCAL = caller();
const ROBOT: LocalUser = { uid: 4_000_000, name: 'robot', groups: ['robot', 'sudo'] };

export interface SceneOptions {
  /** Folder of an earlier scene, whose data is used again. */
  readonly folder?: string;
  readonly dataPath?: string;
  readonly settings?: Partial<ShutdownSettings>;
  readonly power?: PowerControl;
  /** Owners of the UDP ports of a caller; by default robot, a member of the group sudo. */
  readonly findUsers?: FindUsers;
  readonly bootId?: string;
}

/** A machine that allows only a dry run. */
export const dryRunOnly: PowerControl = {
  prepare: async () => undefined,
  refusal: async (action) => (action === 'dry-run' ? null : 'which cannot be done here; set it to dry-run'),
  inhibition: async () => null,
  perform: async ({ action }) => {
    if (action !== 'dry-run') throw new Error(`${action} cannot be done here`);
  },
  isGoingDown: async () => false,
};

/** A machine that allows every action and records it. */
export class TestPower implements PowerControl {
  readonly done: string[] = [];
  goingDown: boolean | null = false;
  prepare = async (): Promise<void> => undefined;
  refusal = async (): Promise<string | null> => null;
  inhibition = async (_action: ShutdownAction, _reason: ShutdownReason): Promise<string | null> => null;
  perform = async ({ action, requestedBy }: ShutdownContext): Promise<void> => {
    this.done.push(`${action} for ${requestedBy}`);
    this.goingDown = true;
  };
  isGoingDown = async (): Promise<boolean | null> => this.goingDown;
}

/** The safe shutdown with the real store, real executables and a systemctl that records its calls. */
export class Scene {
  readonly folder: string;
  readonly hooks: string;
  readonly store: TestStore;
  readonly shutdown: SafeShutdown;
  readonly settings: ShutdownSettings;
  readonly progress: ShutdownProgress[] = [];
  readonly logged: { readonly level: LogLevel; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];

  constructor(t: Test, options: SceneOptions = {}) {
    this.folder = options.folder ?? temporaryFolder(t);
    this.hooks = join(this.folder, 'shutdown.d');
    const bin = join(this.folder, 'bin');
    mkdirSync(this.hooks, { recursive: true });
    mkdirSync(bin, { recursive: true });
    executable(join(bin, 'systemctl'), `echo "stop $4" >> '${this.folder}/order'\n[ "$4" != broken.service ]`);
    const dataPath = options.dataPath === undefined ? {} : { dataPath: options.dataPath };
    this.store = new TestStore(this.folder, dataPath);
    this.settings = {
      enabled: true,
      action: 'dry-run',
      allow_from: [],
      allow_groups: ['edge-health', 'sudo'],
      allow_users: [],
      trust_network: false,
      max_requests_per_minute: 600,
      hooksFolder: this.hooks,
      hooksRequired: true,
      stop_units: [],
      ...options.settings,
    };
    const environment = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
    const log = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      this.logged.push({ level, message, fields });
    };
    this.shutdown = new SafeShutdown({
      settings: this.settings,
      clocks: systemClocks(),
      log,
      records: this.store.store,
      flushStore: () => this.store.store.flush(),
      runners: machineRunners(environment, log),
      power: options.power ?? dryRunOnly,
      findUsers: options.findUsers ?? (async () => [ROBOT]),
      bootId: options.bootId ?? 'this boot',
      publish: (progress) => this.progress.push(progress),
    });
    t.teardown(() => this.stop());
  }

  static async start(t: Test, options: SceneOptions = {}): Promise<Scene> {
    const scene = new Scene(t, options);
    await scene.store.store.start();
    await scene.shutdown.start();
    return scene;
  }

  /** Adds a hook that records its run. */
  hook(name: string, script = '', mode = 0o755): this {
    executable(join(this.hooks, name), `echo "hook ${name}" >> '${this.folder}/order'\n${script}`, mode);
    return this;
  }

  /** Adds a hook that runs until release(). */
  heldHook(name: string): this {
    rmSync(this.#released(), { force: true });
    return this.hook(name, `while [ ! -e '${this.#released()}' ]; do sleep 0.02; done`);
  }

  release(): void {
    writeFileSync(this.#released(), '');
  }

  #released(): string {
    return join(this.folder, 'released');
  }

  /** Hooks that ran and units that were stopped, in order. */
  order(): string[] {
    const file = join(this.folder, 'order');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }

  async call(more: Partial<ShutdownCall> = {}, caller: ShutdownCaller = LOCAL): Promise<ShutdownReply> {
    const call = { reason: 'MAINTENANCE', requested_by: 'operator', timeout: TIMEOUT_SECONDS, ...more };
    const reply = await this.shutdown.handler(call, caller);
    if (!reply) throw new Error('no reply');
    return reply;
  }

  /** Resolves with the first progress message that matches. */
  waitForProgress(pattern: RegExp): Promise<ShutdownProgress> {
    const describe = (): unknown => this.progress;
    return until(`a progress message matches ${pattern}`, () => this.progress.find(({ message }) => pattern.test(message)), { describe });
  }

  /** Resolves with the last progress message once no shutdown is in progress. */
  ended(): Promise<ShutdownProgress> {
    const last = async (): Promise<ShutdownProgress | null> => {
      // Reading the state before the messages ensures that no later message is missed.
      const { state } = await this.shutdown.status();
      const progress = this.progress.at(-1);
      return progress && progress.state !== 'in_progress' && state !== 'in_progress' ? progress : null;
    };
    return until('the shutdown ended', last, { describe: () => this.progress });
  }

  records(limit = 10_000): Promise<ShutdownRecord[]> {
    return this.store.store.shutdowns({ accepted: null, limit });
  }

  async stop(): Promise<void> {
    await this.shutdown.stop();
    await this.store.stop();
  }
}

export function executable(path: string, script: string, mode = 0o755): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, mode); // Independent of the umask.
}

/** Whether a process with this text in its command line is running. */
export function isAlive(mark: string): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && pid !== String(process.pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark);
    } catch {
      return false; // The process has already ended.
    }
  });
}
