import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { numberOf, showUnits } from '../../src/client/systemctl-show.ts';
import { MAIN_UNIT, SCHEDULER_UNIT } from '../../src/client/unit-limits.ts';
import { readBootId } from '../../src/core/platform/boot-id.ts';
import type { JobContext } from '../lib/job.ts';
import { findProgram, runProgram } from '../lib/run-program.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor, UNIT_PROPERTIES, type Unit } from './check.ts';

const INSTANCES = 'edge-health@*.service';

export function readUnits({ environment, signal }: JobContext): CheckContext['units'] {
  return showUnits([MAIN_UNIT, SCHEDULER_UNIT, INSTANCES], UNIT_PROPERTIES, { environment, signal });
}

/** The unit of this name, if systemd has it installed. */
export function installedUnit(units: Awaited<CheckContext['units']>, id: string): Unit | undefined {
  return units.kind === 'units' ? units.units.find((unit) => unit.Id === id && unit.LoadState !== 'not-found') : undefined;
}

/** sysexits codes after which systemd does not restart the service. */
const FINAL_EXITS: Readonly<Record<string, readonly [what: string, remedy: string]>> = {
  64: ['it was started with invalid arguments', 'compare with systemctl cat'],
  69: ['something is not installed', 'see journalctl -u'],
  78: ['its configuration has errors', 'edge-health check-config lists them'],
};

/** Results of systemd.exec(5). */
const RESULTS: Readonly<Record<string, string>> = {
  watchdog: 'it hung and was killed by the watchdog',
  'oom-kill': 'it was killed: out of memory',
  'start-limit-hit': 'it failed too often',
  signal: 'it was killed',
  'core-dump': 'it crashed',
  timeout: 'it did not start or stop in time',
  'exit-code': 'it ended with an error',
  resources: 'no memory or file handle was available to start it',
};

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/**
 * Returns null if there is nothing to report, as for a role that neither runs nor should. `restarted`: restarts since the previous run;
 * `failures`: results of the last 24 hours in the journal, or null if they were not read.
 */
export function evaluateUnit(unit: Unit, restarted: number, failures: readonly string[] | null): CheckResult | null {
  const { ActiveState: active, ExecMainStatus, Id: id, LoadState: load, Result: result, SubState: sub, UnitFileState: file } = unit;
  const unitName = basename(id, '.service');
  const restarts = numberOf(unit.NRestarts) ?? 0;
  const kills = failures?.filter((failure) => failure === 'watchdog').length ?? null;
  const measured = { load, file, active, sub, result, restarts, restarts_since_last_check: restarted, watchdog_kills_24h: kills };
  const { critical, note, ok, warning } = resultsFor(`unit ${unitName}`, measured);
  const journal = `journalctl -u ${unitName} -n 50`;
  const watchdog = kills ? `; ${kills} watchdog ${kills === 1 ? 'kill' : 'kills'} in 24 h` : '';
  if (load === 'not-found')
    return id === MAIN_UNIT ? note('there is no such unit here (a checkout, or a container without systemd)') : null;
  if (load === 'masked') return critical('it is masked', `systemctl unmask ${id}; systemctl enable --now ${id}`);
  if (load !== 'loaded') return critical(`systemd cannot load it (${load})`, `systemctl status ${id}`);
  switch (active) {
    case 'active':
    case 'reloading':
    case 'refreshing': {
      const before = restarts > 0 ? `, restarted ${times(restarts)} before` : '';
      if (restarted === 0) return ok(`runs since ${unit.StateChangeTimestamp || 'its start'}${before}${watchdog}`);
      const causes = [...new Set((failures ?? []).slice(-restarted))];
      const why = causes.length === 0 ? '' : ` (${causes.join(', ')})`;
      return warning(`restarted ${times(restarted)} since the last check${why}${watchdog}`, journal);
    }
    case 'activating':
      if (sub !== 'auto-restart') return warning(`starting (${sub})`, journal);
      return critical(`${RESULTS[result] ?? `it ended (${result})`}, and is about to be restarted${watchdog}`, journal);
    case 'failed': {
      const [what, remedy] = (result === 'exit-code' ? FINAL_EXITS[ExecMainStatus] : undefined) ?? [RESULTS[result] ?? result, journal];
      return critical(`it failed: ${what}${watchdog}`, `${remedy}; then systemctl reset-failed ${id}; systemctl start ${id}`);
    }
    case 'deactivating':
      return critical('it is being stopped', `systemctl start ${id}`);
    default:
      if (id !== MAIN_UNIT && file !== 'enabled') return null;
      return critical('it is stopped', `systemctl ${file === 'enabled' ? 'start' : 'enable --now'} ${id}`);
  }
}

const MEMORY_WARNING = 0.9;

/** Returns null if there is no limit or memory is not accounted. `usedBytes` excludes memory that the kernel can reclaim at any time. */
export function evaluateMemory({ Id: id, MemoryCurrent, MemoryMax }: Unit, usedBytes: number | null): CheckResult | null {
  const max = numberOf(MemoryMax);
  if (max === null || max === 0 || usedBytes === null) return null;
  const measured = { used_bytes: usedBytes, memory_current_bytes: numberOf(MemoryCurrent), memory_max_bytes: max };
  const { ok, warning } = resultsFor(`memory of ${basename(id, '.service')}`, measured);
  const message = `${Math.round(usedBytes / 1e6)} of ${Math.round(max / 1e6)} MB`;
  if (usedBytes < MEMORY_WARNING * max) return ok(message);
  return warning(message, `systemctl restart ${id}, or raise MemoryMax= with systemctl edit ${id}`);
}

/**
 * The memory of a unit without the page cache of the files that it reads and writes. MemoryCurrent includes that cache, which normally
 * grows up to MemoryMax. Null if the unit is not running or its control group lacks these figures.
 */
export async function readUsedBytes({ ControlGroup: group, MemoryCurrent }: Unit, root = ''): Promise<number | null> {
  const current = numberOf(MemoryCurrent);
  if (group === '' || current === null) return null;
  const read = (...parts: string[]): Promise<string | null> =>
    readFile(join(root, '/sys/fs/cgroup', ...parts, 'memory.stat'), 'utf8').catch(() => null);
  const unified = await read(group);
  const text = unified ?? (await read('memory', group)); // Older systems have one hierarchy per controller.
  if (text === null) return null;
  const value = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  const cache = unified === null ? value('total_cache') - value('total_shmem') : value('file') - value('shmem') + value('slab_reclaimable');
  return Math.max(0, current - cache);
}

/** systemd's message "Failed with result …" (systemd.journal-fields(7), sd-messages.h: SD_MESSAGE_UNIT_FAILURE_RESULT). */
const FAILED_WITH_RESULT = 'd9b373ed55a64feb8242e02dbe79a49c';
const JOURNAL_TIMEOUT_SECONDS = 6;

/** Results of failed runs in the journal, oldest first, such as watchdog, signal, exit-code, oom-kill, timeout and core-dump. */
export function parseFailures(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    try {
      const { UNIT_RESULT: result } = JSON.parse(line) as { UNIT_RESULT?: unknown };
      return typeof result === 'string' ? [result] : [];
    } catch {
      return [];
    }
  });
}

/** How a unit failed in the last 24 hours, or null if there is no readable journal. */
async function readFailures(unit: string, { environment, signal }: CheckContext): Promise<string[] | null> {
  if ((await findProgram('journalctl', environment)) === null) return null;
  const output = ['--quiet', '--no-pager', '--output=json', '--output-fields=UNIT_RESULT', '--since=-24h', '--lines=1000'];
  const argv = ['journalctl', ...output, '_PID=1', `MESSAGE_ID=${FAILED_WITH_RESULT}`, `UNIT=${unit}`];
  const found = await runProgram(argv, { environment, timeoutSeconds: JOURNAL_TIMEOUT_SECONDS, signal }).catch(() => null);
  return found?.exitCode === 0 ? parseFailures(found.stdout) : null;
}

/** The units of the service and of its roles. */
export const checkUnits: Check = async (context) => {
  const shown = await context.units;
  const { note, unknown } = resultsFor('unit edge-health');
  if (shown.kind === 'no systemd') return [note(`${shown.why}: its unit is not checked`)];
  if (shown.kind === 'failed') return [unknown(shown.why, 'systemctl status edge-health')];
  const boot = readBootId('/proc') ?? '';
  const results: (CheckResult | null)[] = [];
  for (const unit of shown.units.filter(({ Id }) => Id !== SCHEDULER_UNIT)) {
    const restarts = numberOf(unit.NRestarts) ?? 0;
    const restarted = unit.LoadState === 'loaded' ? context.counters.increase(`restarts of ${unit.Id}`, boot, restarts) : 0;
    // The journal may be large and on a slow card, so it is read only if there is something to explain.
    const isUnexplained =
      restarted > 0 || unit.ActiveState === 'failed' || unit.SubState === 'auto-restart' || (context.trigger === 'manual' && restarts > 0);
    const failures = isUnexplained ? await readFailures(unit.Id, context) : null;
    results.push(evaluateUnit(unit, restarted, failures), evaluateMemory(unit, await readUsedBytes(unit)));
  }
  return results.filter((result) => result !== null);
};
