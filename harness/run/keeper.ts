import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../../src/installation/programs.ts';
import { makeFolder } from '../../src/system/data-folder.ts';
import { startTime } from '../../src/system/running-service.ts';

/** How a process of the service ended, as the keeper saw it. */
export interface Exit {
  /** Wall clock, in ms since the epoch. */
  readonly at: number;
  readonly pid: number;
  readonly code: number | null;
  /** Such as `KILL`. */
  readonly signal: string | null;
  /** The run had ended, and the service with it. */
  readonly asked?: true;
}

/** The service may take 30 s to end, and so may a backup of the scheduler. */
const STOP_SECONDS = 40;
const POLL_MS = 100;
/** What would point the service at whoever started the harness. */
const NOT_INHERITED = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'STATE_DIRECTORY', 'RUNTIME_DIRECTORY', 'INVOCATION_ID'];

/** The process that keeps the service of a checkout running (keeper.sh); it outlives the harness. */
export class Keeper {
  readonly folder: string;

  /** `runFolder`: the folder of the run. */
  constructor(runFolder: string) {
    this.folder = join(runFolder, 'keeper');
  }

  /** Its process id; null: it does not run. */
  get running(): number | null {
    const [pid, started] = this.#read('keeper.pid').trim().split(' ').map(Number);
    return pid && started && startTime(pid) === started ? pid : null;
  }

  /** Process id of the service as it was started last; null: it does not run. */
  pid(): number | null {
    const pid = Number(this.#read('service.pid'));
    return this.running !== null && pid > 0 && startTime(pid) !== null ? pid : null;
  }

  /** Every end of the service so far, oldest first. */
  exits(): readonly Exit[] {
    return this.#read('exits.ndjson')
      .split('\n')
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as Exit];
        } catch {
          return []; // Being written, or nothing.
        }
      });
  }

  /** What the service said last, for people. */
  lastWords(): string {
    return this.#read('service.log').trimEnd().split('\n').slice(-5).join('\n');
  }

  /** Starts it in a session of its own, so that neither a signal nor a closed terminal reaches it. */
  start(configFile: string): void {
    makeFolder(this.folder);
    for (const name of ['service.pid', 'ops.pid']) fs.rmSync(join(this.folder, name), { force: true });
    const environment = { ...process.env };
    for (const name of NOT_INHERITED) delete environment[name];
    const child = spawn('/bin/sh', [fileURLToPath(PROGRAMS.harnessKeeper), this.folder, fileURLToPath(PROGRAMS.command), configFile], {
      detached: true,
      stdio: 'ignore',
      env: environment,
    });
    child.unref();
  }

  /** Ends the service, the scheduler and itself. */
  async stop(): Promise<void> {
    const { running } = this;
    if (running === null) return;
    const pids = ['service.pid', 'ops.pid'].map((name) => Number(this.#read(name))).filter((pid) => pid > 0);
    signal(running, 'SIGTERM');
    const deadline = performance.now() + STOP_SECONDS * 1000;
    while (this.running !== null && performance.now() < deadline) await pause();
    if (this.running === null) return;
    // All of them are of its process group.
    for (const pid of [-running, ...pids]) signal(pid, 'SIGKILL');
  }

  #read(name: string): string {
    try {
      return fs.readFileSync(join(this.folder, name), 'utf8');
    } catch {
      return '';
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, POLL_MS);
  });
