import { execFile } from 'node:child_process';
import { numberOf, parseShownUnits, type UnitProperties } from '../../src/client/systemctl-show.ts';
import type { Cause } from '../record/entries.ts';
import {
  type KnownRun,
  parseJsonLines,
  type RunEnd,
  type RunsBetween,
  type SupervisedRun,
  type Supervisor,
  signalName,
} from './supervisor.ts';

const PROPERTIES = [
  ...['InvocationID', 'MainPID', 'NRestarts', 'ControlGroup', 'CPUUsageNSec'],
  ...['ActiveState', 'SubState', 'Result', 'ExecMainCode', 'ExecMainStatus'],
] as const;
type Properties = UnitProperties<(typeof PROPERTIES)[number]>;

/** The number of systemd messages about the unit to read: a restart has about eight. */
const LINES = 400;
/** The longest time between the kernel's message about a process that it killed and the process's end. */
const KERNEL_WITHIN_SECONDS = 10;
/** `ExecMainCode` is `si_code` of waitid(2). */
const MAIN_CODES: Readonly<Record<string, string>> = { 1: 'exited', 2: 'killed', 3: 'dumped' };

export interface UnitOptions {
  /** Such as `edge-health.service`. */
  readonly unit: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Replaced in tests to return recorded output. */
  readonly runProgram?: RunProgram;
}

/**
 * A supervisor for a service that systemd runs. It calls `systemctl` and `journalctl` only when the run has changed or the
 * service does not respond.
 */
export class UnitSupervisor implements Supervisor {
  readonly #unit: string;
  readonly #runProgram: RunProgram;
  /** How a run ended, read while the service did not respond, because this user may have no permission to read the journal. */
  #seenEnd: { readonly invocation: string; readonly end: RunEnd } | null = null;

  constructor({ environment, runProgram = programRunner(environment), unit }: UnitOptions) {
    this.#unit = unit;
    this.#runProgram = runProgram;
  }

  async now(): Promise<SupervisedRun | null> {
    const found = await this.#show();
    if (found === null || found.InvocationID === '' || !(Number(found.MainPID) > 0)) return null;
    const nanoseconds = numberOf(found.CPUUsageNSec);
    return {
      pid: Number(found.MainPID),
      invocation: found.InvocationID,
      restarts: numberOf(found.NRestarts),
      controlGroup: found.ControlGroup === '' ? null : found.ControlGroup,
      cpuSeconds: nanoseconds === null ? null : nanoseconds / 1e9,
    };
  }

  async between(before: KnownRun, now: SupervisedRun): Promise<RunsBetween | null> {
    const counted = unseenRuns(before.restarts, now.restarts);
    const runs = await this.#journal();
    const here = runs.findIndex(({ invocation }) => invocation === now.invocation);
    const earlier = here < 0 ? runs : runs.slice(0, here);
    const last = earlier.at(-1);
    if (!last) return this.#withoutJournal(before, now, counted);
    const known = earlier.findIndex(({ invocation }) => invocation === before.invocation);
    // If the journal does not reach back to the known run, the counter gives a lower bound.
    const unseen = Math.max(counted, known < 0 ? 0 : earlier.length - 1 - known);
    return { ...(await this.#withKernel(last, before)), unseen };
  }

  async onNoResponse(invocation: string | null): Promise<void> {
    const found = await this.#show();
    if (found === null || invocation === null || found.InvocationID !== invocation) return;
    if (found.ActiveState !== 'failed' && found.ActiveState !== 'inactive' && found.SubState !== 'auto-restart') return;
    const end = endOfUnit({
      result: found.Result,
      code: MAIN_CODES[found.ExecMainCode] ?? null,
      status: found.ExecMainStatus,
      // The service never exits with success by itself, so a unit that did and was not restarted was stopped on request.
      isRequested: found.ActiveState === 'inactive' && found.Result === 'success',
      outOfMemory: false,
    });
    this.#seenEnd = { invocation, end };
  }

  #withoutJournal(before: KnownRun, { restarts }: SupervisedRun, unseen: number): RunsBetween {
    if (this.#seenEnd !== null && this.#seenEnd.invocation === before.invocation && unseen === 0) return { ...this.#seenEnd.end, unseen };
    const byItself = (restarts ?? 0) > 0 ? 'systemd restarted it by itself; ' : '';
    return { cause: 'unknown', detail: `${byItself}the journal has nothing about it, or may not be read`, unseen };
  }

  /** With control groups version 1, systemd does not report that the kernel killed a process for lack of memory; the kernel's log does. */
  async #withKernel({ end, endedMs, invocation }: JournalRun, { invocation: known, pid }: KnownRun): Promise<RunEnd> {
    if (end.cause !== 'signal' || end.detail !== 'SIGKILL' || endedMs === null || invocation !== known || pid === null) return end;
    const range = [-1, 1].map((sign) => (endedMs / 1000 + sign * KERNEL_WITHIN_SECONDS).toFixed(0));
    const how = ['--quiet', '--no-pager', '--output=cat', `--since=@${range[0]}`, `--until=@${range[1]}`, '_TRANSPORT=kernel'];
    const text = await this.#runProgram('journalctl', how);
    return new RegExp(`\\bKilled process ${pid}\\b`).test(text ?? '') ? { cause: 'oom-kill', detail: end.detail } : end;
  }

  async #show(): Promise<Properties | null> {
    const text = await this.#runProgram('systemctl', ['show', `--property=${PROPERTIES.join(',')}`, '--', this.#unit]);
    return text === null ? null : (parseShownUnits(text, PROPERTIES)[0] ?? null);
  }

  async #journal(): Promise<JournalRun[]> {
    const how = ['--quiet', '--no-pager', '--output=json', `--output-fields=${JOURNAL_FIELDS.join(',')}`, `--lines=${LINES}`];
    return parseJournal((await this.#runProgram('journalctl', [...how, '_PID=1', `UNIT=${this.#unit}`])) ?? '');
  }
}

/** Fields of systemd's messages about a unit that show how its runs ended (systemd.journal-fields(7)). */
const JOURNAL_FIELDS = ['MESSAGE_ID', 'INVOCATION_ID', 'UNIT_RESULT', 'EXIT_CODE', 'EXIT_STATUS', 'COMMAND'] as const;

/** Message ids of sd-messages.h. */
const STOPPING = 'de5b426a63be47a7b6ac3eaac82e2f6f';
const PROCESS_EXIT = '98e322203f7a4ed290d09fe03c09fe15';
const SUCCEEDED = '7ad2d189f7e94e70a38c781354912448';
const FAILED = 'd9b373ed55a64feb8242e02dbe79a49c';
const OUT_OF_MEMORY = 'fe6faa94e7774663a0da52717891d8ef';

/** Facts about the end of a unit's run. */
export interface UnitEnd {
  /** `Result` or `UNIT_RESULT`; null if unknown. */
  readonly result: string | null;
  /** How the main process ended: `exited` with a status, `killed` or `dumped` by a signal; null if unknown. */
  readonly code: string | null;
  readonly status: string | null;
  /** Whether systemd was requested to stop the unit. */
  readonly isRequested: boolean;
  /** Whether the kernel killed one of its processes for lack of memory. */
  readonly outOfMemory: boolean;
}

/** One run of a unit, according to the journal. */
export interface JournalRun {
  readonly invocation: string;
  readonly end: RunEnd;
  /** When systemd noticed the end of the main process, ms since the epoch; null if the journal lacks it, as after a stop on request. */
  readonly endedMs: number | null;
}

type RunMessages = { -readonly [Name in keyof UnitEnd]: UnitEnd[Name] } & { endedMs: number | null };
type Entry = Readonly<Partial<Record<(typeof JOURNAL_FIELDS)[number] | '__REALTIME_TIMESTAMP', unknown>>>;

/** The runs in the output of `journalctl --output=json`, oldest first. Lines that are not entries are skipped. */
export function parseJournal(text: string): JournalRun[] {
  const runs = new Map<string, RunMessages>();
  for (const entry of parseJsonLines<Entry | null>(text)) {
    const invocation = entry?.INVOCATION_ID;
    if (!entry || typeof invocation !== 'string') continue;
    const run = runs.get(invocation) ?? { result: null, code: null, status: null, isRequested: false, outOfMemory: false, endedMs: null };
    runs.set(invocation, run);
    addMessage(run, entry);
  }
  return [...runs].map(([invocation, { endedMs, ...found }]) => ({ invocation, end: endOfUnit(found), endedMs }));
}

function addMessage(run: RunMessages, entry: Entry): void {
  const { COMMAND = 'ExecStart', EXIT_CODE, EXIT_STATUS, UNIT_RESULT } = entry;
  switch (entry.MESSAGE_ID) {
    case STOPPING:
      // After the end of the main process, this message is part of an automatic restart.
      if (run.endedMs === null && run.result === null) run.isRequested = true;
      break;
    case OUT_OF_MEMORY:
      run.outOfMemory = true;
      break;
    case SUCCEEDED:
      run.result ??= 'success';
      break;
    case FAILED:
      if (typeof UNIT_RESULT === 'string') run.result ??= UNIT_RESULT;
      break;
    case PROCESS_EXIT:
      // Other commands are processes besides the main one, such as that of a reload.
      if (COMMAND !== 'ExecStart') break;
      run.code = typeof EXIT_CODE === 'string' ? EXIT_CODE : null;
      run.status = typeof EXIT_STATUS === 'string' ? EXIT_STATUS : null;
      run.endedMs = Number(entry.__REALTIME_TIMESTAMP) / 1000;
  }
}

/** Results of a unit (systemd.exec(5), $SERVICE_RESULT). Other results are named in the detail. */
const CAUSE_OF_RESULT: Readonly<Record<string, Cause>> = {
  watchdog: 'watchdog',
  signal: 'signal',
  'core-dump': 'core-dump',
  'oom-kill': 'oom-kill',
  'exit-code': 'exit',
  timeout: 'timeout',
};

/** Why a run of a unit ended. */
export function endOfUnit({ isRequested, code, outOfMemory, result, status }: UnitEnd): RunEnd {
  const detail = code === null || status === null ? '' : code === 'exited' ? `exit status ${status}` : signalName(status);
  // With OOMPolicy=continue, the result is `signal`.
  if (outOfMemory && detail === 'SIGKILL' && !isRequested) return { cause: 'oom-kill', detail };
  if (result !== null && result !== 'success') {
    const cause = CAUSE_OF_RESULT[result];
    return cause ? { cause, detail } : { cause: 'unknown', detail: [`result "${result}"`, detail].filter(Boolean).join(', ') };
  }
  if (isRequested) return { cause: 'stopped', detail: '' };
  if (code === 'exited') return { cause: 'exit', detail };
  if (code === 'killed') return { cause: 'signal', detail };
  if (code === 'dumped') return { cause: 'core-dump', detail };
  return result === 'success' ? { cause: 'exit', detail: 'it exited without an error' } : { cause: 'unknown', detail };
}

/**
 * The number of unobserved runs between a run with `before` automatic restarts and one with `now`. A manual start resets the count to 0;
 * the result is then a lower bound.
 */
export function unseenRuns(before: number | null, now: number | null): number {
  if (now === null || now === 0 || before === null) return 0;
  return now > before ? now - before - 1 : now;
}

/** Runs a program and returns its standard output, or null if it is not installed, failed or timed out. */
export type RunProgram = (file: string, parameters: readonly string[]) => Promise<string | null>;

const TIMEOUT_MS = 10_000;
const MAX_OUTPUT_BYTES = 4_000_000;

function programRunner(environment: NodeJS.ProcessEnv): RunProgram {
  const options = {
    env: { ...environment, LC_ALL: 'C' },
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_OUTPUT_BYTES,
  } as const;
  return (file, parameters) =>
    new Promise((resolve) => {
      execFile(file, parameters, options, (error, stdout) => resolve(error === null ? stdout : null));
    });
}
