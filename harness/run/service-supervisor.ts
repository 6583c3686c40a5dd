import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTime } from '../../src/client/running-service.ts';
import { makeFolder } from '../../src/core/files/data-folder.ts';
import { PROGRAMS } from '../../src/core/files/programs.ts';
import { type Exit, ProcessSupervisor, parseJsonLines } from '../observe/supervisor.ts';
import { pollUntil } from './poll.ts';
import { runningProcess } from './run-folder.ts';

/** The service may take 30 s to stop, and so may a backup run by the scheduler. */
const STOP_SECONDS = 40;
const POLL_MS = 100;
/** Variables that would connect the service to the service manager of the harness. */
const NOT_INHERITED = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'STATE_DIRECTORY', 'RUNTIME_DIRECTORY', 'INVOCATION_ID'];

/** Controls service-supervisor.sh, the process that runs the service of a checkout. It outlives the harness. */
export class ServiceSupervisor extends ProcessSupervisor {
  readonly folder: string;

  /** `runFolder`: the folder of the run. */
  constructor(runFolder: string) {
    super();
    this.folder = join(runFolder, 'supervisor');
  }

  /** The supervisor's process id, or null if it is not running. */
  get running(): number | null {
    return runningProcess(join(this.folder, 'supervisor.pid'));
  }

  pid(): number | null {
    const pid = Number(this.#read('service.pid'));
    return this.running !== null && pid > 0 && startTime(pid) !== null ? pid : null;
  }

  exits(): readonly Exit[] {
    return parseJsonLines(this.#read('exits.ndjson'));
  }

  /** The last log lines, for display. */
  lastLogLines(): string {
    return this.#read('service.log').trimEnd().split('\n').slice(-5).join('\n');
  }

  /** Starts the supervisor in its own session, so that it receives neither signals of the terminal nor a hangup. */
  start(configFile: string): void {
    makeFolder(this.folder);
    for (const name of ['service.pid', 'ops.pid']) fs.rmSync(join(this.folder, name), { force: true });
    const env = { ...process.env };
    for (const name of NOT_INHERITED) delete env[name];
    const parameters = [fileURLToPath(PROGRAMS.serviceSupervisor), this.folder, fileURLToPath(PROGRAMS.command), configFile];
    spawn('/bin/sh', parameters, { detached: true, stdio: 'ignore', env }).unref();
  }

  /** Stops the service, the scheduler and the supervisor. */
  async stop(): Promise<void> {
    const { running } = this;
    if (running === null) return;
    signal(running, 'SIGTERM');
    const hasEnded = await pollUntil(() => this.running === null, STOP_SECONDS, POLL_MS);
    // The service and the scheduler are in the supervisor's process group.
    if (!hasEnded) signal(-running, 'SIGKILL');
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
    // The process has already ended.
  }
}
