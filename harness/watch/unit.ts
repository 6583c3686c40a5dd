import { numberOf, parseShownUnits, type UnitProperties } from '../../src/system/systemctl-show.ts';
import { endOfUnit, unseenRuns } from './causes.ts';
import type { KnownRun, RunEnd, RunsBetween, SupervisedRun, Supervisor } from './supervisor.ts';
import { type Tool, toolOf } from './tool.ts';
import { JOURNAL_FIELDS, type JournalRun, parseJournal } from './unit-journal.ts';

const PROPERTIES = [
  ...['InvocationID', 'MainPID', 'NRestarts', 'ControlGroup', 'CPUUsageNSec', 'LoadState'],
  ...['ActiveState', 'SubState', 'Result', 'ExecMainCode', 'ExecMainStatus'],
] as const;
type Properties = UnitProperties<(typeof PROPERTIES)[number]>;

/** systemd's own messages about a unit that are looked through: a restart has about eight. */
const LINES = 400;
/** Around the end of a process, in which the kernel tells that it killed it. */
const KERNEL_WITHIN_SECONDS = 10;
/** `ExecMainCode` is `si_code` of waitid(2). */
const MAIN_CODES: Readonly<Record<string, string>> = { 1: 'exited', 2: 'killed', 3: 'dumped' };

export interface UnitOptions {
  /** Such as `edge-health.service`. */
  readonly unit: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Recorded answers in tests. */
  readonly tool?: Tool;
}

/** systemd runs the service; it and the journal are asked by their own programs, and only when there is something to ask. */
export class UnitSupervisor implements Supervisor {
  readonly #unit: string;
  readonly #tool: Tool;
  /** How a run was seen to have ended while the service was away: the journal may be closed to us. */
  #seenEnd: { readonly invocation: string; readonly end: RunEnd } | null = null;

  constructor({ environment, tool = toolOf(environment), unit }: UnitOptions) {
    this.#unit = unit;
    this.#tool = tool;
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
    // Where the journal does not reach back to it, the counter tells the least there can have been.
    const unseen = Math.max(counted, known < 0 ? 0 : earlier.length - 1 - known);
    return { ...(await this.#withKernel(last, before)), unseen };
  }

  async absent(invocation: string | null): Promise<void> {
    const found = await this.#show();
    if (found === null || invocation === null || found.InvocationID !== invocation) return;
    const isOver = found.ActiveState === 'failed' || found.ActiveState === 'inactive' || found.SubState === 'auto-restart';
    if (!isOver) return;
    const end = endOfUnit({
      result: found.Result,
      code: MAIN_CODES[found.ExecMainCode] ?? null,
      status: found.ExecMainStatus,
      // What ends well and is not started again was asked to: by itself the service does not end.
      asked: found.ActiveState === 'inactive' && found.Result === 'success',
      outOfMemory: false,
    });
    this.#seenEnd = { invocation, end };
  }

  #withoutJournal(before: KnownRun, { restarts }: SupervisedRun, unseen: number): RunsBetween {
    if (this.#seenEnd !== null && this.#seenEnd.invocation === before.invocation && unseen === 0) return { ...this.#seenEnd.end, unseen };
    const byItself = (restarts ?? 0) > 0 ? 'systemd restarted it by itself; ' : '';
    return { cause: 'unknown', detail: `${byItself}the journal has nothing about it, or may not be read`, unseen };
  }

  /** Where control groups are of version 1, the kernel alone knows that it killed for want of memory. */
  async #withKernel({ end, endedMs, invocation }: JournalRun, { invocation: known, pid }: KnownRun): Promise<RunEnd> {
    if (end.cause !== 'signal' || end.detail !== 'SIGKILL' || endedMs === null || invocation !== known || pid === null) return end;
    const range = [-1, 1].map((sign) => (endedMs / 1000 + sign * KERNEL_WITHIN_SECONDS).toFixed(0));
    const how = ['--quiet', '--no-pager', '--output=cat', `--since=@${range[0]}`, `--until=@${range[1]}`, '_TRANSPORT=kernel'];
    const text = await this.#tool('journalctl', how);
    return new RegExp(`\\bKilled process ${pid}\\b`).test(text ?? '') ? { cause: 'oom-kill', detail: end.detail } : end;
  }

  async #show(): Promise<Properties | null> {
    const text = await this.#tool('systemctl', ['show', `--property=${PROPERTIES.join(',')}`, '--', this.#unit]);
    return text === null ? null : (parseShownUnits(text, PROPERTIES)[0] ?? null);
  }

  async #journal(): Promise<JournalRun[]> {
    const how = ['--quiet', '--no-pager', '--output=json', `--output-fields=${JOURNAL_FIELDS.join(',')}`, `--lines=${LINES}`];
    return parseJournal((await this.#tool('journalctl', [...how, '_PID=1', `UNIT=${this.#unit}`])) ?? '');
  }
}
