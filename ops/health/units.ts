import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobContext } from '../lib/job.ts';
import { find, runTool } from './tool.ts';

export const MAIN_UNIT = 'edge-health.service';
export const SCHEDULER_UNIT = 'edge-health-ops.service';
const INSTANCES = 'edge-health@*.service';

/** The unit that runs the service of a configuration file: a role has one of its own. */
export function unitOfConfig(file: string): string {
  const role = /^\/etc\/edge-health\/([^/]+)_config\.yaml$/.exec(file)?.[1];
  return role === undefined || role === 'edge_health' ? MAIN_UNIT : `edge-health@${role}.service`;
}

/** A unit as `systemctl show` has it. */
export interface Unit {
  readonly id: string;
  readonly load: string;
  /** enabled, disabled, static, masked; '' where there is no file. */
  readonly file: string;
  readonly active: string;
  readonly sub: string;
  readonly result: string;
  /** Exit status or number of the signal of its last main process. */
  readonly exitStatus: number;
  /** How often systemd restarted it by itself since it was last started by somebody. */
  readonly restarts: number;
  /** With the page cache that belongs to it; null: not running, or not accounted. */
  readonly memoryBytes: number | null;
  /** Null: no limit. */
  readonly memoryMaxBytes: number | null;
  readonly controlGroup: string;
  /** In the machine's own way to write times; '' if it never changed. */
  readonly since: string;
}

export type UnitsAnswer =
  | { readonly kind: 'units'; readonly units: readonly Unit[] }
  /** There is no systemd to ask. */
  | { readonly kind: 'none'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

const PROPERTIES = [
  ...['Id', 'LoadState', 'UnitFileState', 'ActiveState', 'SubState', 'Result', 'ExecMainStatus', 'NRestarts'],
  ...['MemoryCurrent', 'MemoryMax', 'ControlGroup', 'StateChangeTimestamp'],
];
const SECONDS = 6;

/** What `systemctl show` prints of several units: a paragraph each. Numbers that are not set come as `[not set]` or `infinity`. */
export function parseUnits(text: string): Unit[] {
  const number = (value: string | undefined): number | null => (/^\d{1,16}$/.test(value ?? '') ? Number(value) : null);
  return text.split('\n\n').flatMap((paragraph) => {
    const entries = paragraph.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
    const of = new Map(entries);
    const id = of.get('Id') ?? '';
    if (id === '') return [];
    return {
      id,
      load: of.get('LoadState') ?? '',
      file: of.get('UnitFileState') ?? '',
      active: of.get('ActiveState') ?? '',
      sub: of.get('SubState') ?? '',
      result: of.get('Result') ?? '',
      exitStatus: number(of.get('ExecMainStatus')) ?? 0,
      restarts: number(of.get('NRestarts')) ?? 0,
      memoryBytes: number(of.get('MemoryCurrent')),
      memoryMaxBytes: number(of.get('MemoryMax')),
      controlGroup: of.get('ControlGroup') ?? '',
      since: of.get('StateChangeTimestamp') ?? '',
    };
  });
}

/** The product's units, one question for all of them. Never rejects. */
export async function askUnits({ environment, signal }: JobContext): Promise<UnitsAnswer> {
  try {
    if ((await find('systemctl', environment)) === null) return { kind: 'none', why: 'there is no systemd here' };
    // --all: also roles that are enabled but do not run.
    const argv = ['systemctl', 'show', '--all', `--property=${PROPERTIES.join(',')}`, '--', MAIN_UNIT, SCHEDULER_UNIT, INSTANCES];
    const { code, complaint, stdout } = await runTool(argv, { environment, seconds: SECONDS, signal });
    if (code === 0) return { kind: 'units', units: parseUnits(stdout) };
    if (/not been booted with systemd|Host is down|Failed to connect to bus: No such file/i.test(complaint))
      return { kind: 'none', why: 'this system was not booted with systemd' };
    return { kind: 'unknown', why: `systemctl: ${complaint || `exit code ${code}`}` };
  } catch (error) {
    return { kind: 'unknown', why: (error as Error).message };
  }
}

/** A unit's run that ended in a failure, as systemd notes it in the journal. */
export interface Failure {
  /** watchdog, signal, exit-code, oom-kill, timeout, core-dump, … */
  readonly result: string;
  readonly atMs: number;
}

/** systemd's message "Failed with result …" (systemd.journal-fields(7), sd-messages.h: SD_MESSAGE_UNIT_FAILURE_RESULT). */
const FAILED_WITH_RESULT = 'd9b373ed55a64feb8242e02dbe79a49c';

export function parseFailures(text: string): Failure[] {
  return text.split('\n').flatMap((line) => {
    try {
      const entry = JSON.parse(line) as { UNIT_RESULT?: unknown; __REALTIME_TIMESTAMP?: unknown };
      const atMs = Number(entry.__REALTIME_TIMESTAMP) / 1000;
      return typeof entry.UNIT_RESULT === 'string' && atMs > 0 ? [{ result: entry.UNIT_RESULT, atMs }] : [];
    } catch {
      return [];
    }
  });
}

/** How a unit failed in the last 24 hours; null: the journal does not tell, or may not be read. */
export async function readFailures(unit: string, environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Failure[] | null> {
  try {
    if ((await find('journalctl', environment)) === null) return null;
    const fields = ['_PID=1', `MESSAGE_ID=${FAILED_WITH_RESULT}`, `UNIT=${unit}`];
    const how = ['--quiet', '--no-pager', '--output=json', '--output-fields=UNIT_RESULT', '--since=-24h', '--lines=1000'];
    const { code, stdout } = await runTool(['journalctl', ...how, ...fields], { environment, seconds: SECONDS, signal });
    return code === 0 ? parseFailures(stdout) : null;
  } catch {
    return null;
  }
}

/**
 * What of a unit's memory the kernel could not simply drop: MemoryCurrent counts the page cache of the files it reads and writes,
 * which grows up to MemoryMax as a matter of course. Null: the control group does not tell.
 */
export async function readUsedBytes(unit: Unit, root: string): Promise<number | null> {
  if (unit.controlGroup === '' || unit.memoryBytes === null) return null;
  const read = (...parts: string[]): Promise<string | null> =>
    readFile(join(root, '/sys/fs/cgroup', ...parts, 'memory.stat'), 'utf8').catch(() => null);
  const unified = await read(unit.controlGroup);
  const text = unified ?? (await read('memory', unit.controlGroup)); // Older systems have a hierarchy for each controller.
  if (text === null) return null;
  const value = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  const cache = unified === null ? value('total_cache') - value('total_shmem') : value('file') - value('shmem') + value('slab_reclaimable');
  return Math.max(0, unit.memoryBytes - cache);
}
