import { basename } from 'node:path';
import { readBootId } from '../../src/system/boot-id.ts';
import type { Check } from './check.ts';
import { type Failure, MAIN_UNIT, readFailures, readUsedBytes, SCHEDULER_UNIT, type Unit } from './units.ts';
import { finding, fine, note, type Verdict } from './verdict.ts';

export interface UnitFacts {
  readonly unit: Unit;
  /** Restarts since the last check. */
  readonly grown: number;
  /** Of the last 24 hours; null: not asked, or the journal does not tell. */
  readonly failures: readonly Failure[] | null;
}

/** sysexits that the service ends with, and which systemd does not try again after. */
const FINAL_EXITS: Readonly<Record<number, readonly [what: string, remedy: string]>> = {
  64: ['it was started with wrong arguments', 'compare with systemctl cat'],
  69: ['something is not installed', 'see journalctl -u'],
  78: ['its configuration has errors', 'edge-health check-config tells which'],
};

/** Results of systemd.exec(5) for people. */
const RESULTS: Readonly<Record<string, string>> = {
  watchdog: 'it hung and was killed by the watchdog',
  'oom-kill': 'it was killed for want of memory',
  'start-limit-hit': 'it failed too often in a row',
  signal: 'it was killed',
  'core-dump': 'it crashed',
  timeout: 'it did not start or stop in time',
  'exit-code': 'it ended with an error',
  resources: 'there was no memory or no file handle left to start it',
};

function count(failures: readonly Failure[] | null, result: string): number | null {
  return failures?.filter((failure) => failure.result === result).length ?? null;
}

function reasonsOf(failures: readonly Failure[] | null, last: number): string {
  const results = (failures ?? []).slice(-last).map(({ result }) => result);
  return results.length === 0 ? '' : ` (${[...new Set(results)].join(', ')})`;
}

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/** Null: there is nothing to say, as of a role that neither runs nor should. */
export function judgeUnit({ failures, grown, unit }: UnitFacts): Verdict | null {
  const { active, exitStatus, file, id, load, restarts, result, sub } = unit;
  const name = `unit ${basename(id, '.service')}`;
  const kills = count(failures, 'watchdog');
  const measured = { load, file, active, sub, result, restarts, restarts_since_last_check: grown, watchdog_kills_24h: kills };
  const journal = `journalctl -u ${basename(id, '.service')} -n 50`;
  const again = `systemctl reset-failed ${id}; systemctl start ${id}`;
  const ofDay = kills ? `; ${kills} watchdog ${kills === 1 ? 'kill' : 'kills'} in 24 h` : '';
  if (load === 'not-found')
    return id === MAIN_UNIT ? note(name, 'there is no such unit here (a checkout, or a container without systemd)', measured) : null;
  if (load === 'masked') return finding(name, 'CRITICAL', 'it is masked', `systemctl unmask ${id}; systemctl enable --now ${id}`, measured);
  if (load !== 'loaded') return finding(name, 'CRITICAL', `systemd cannot load it (${load})`, `systemctl status ${id}`, measured);
  if (active === 'active' || active === 'reloading' || active === 'refreshing') {
    if (grown > 0)
      return finding(
        name,
        'WARNING',
        `restarted ${times(grown)} since the last check${reasonsOf(failures, grown)}${ofDay}`,
        journal,
        measured,
      );
    return fine(
      name,
      `runs since ${unit.since || 'its start'}${restarts > 0 ? `, restarted ${times(restarts)} before` : ''}${ofDay}`,
      measured,
    );
  }
  if (active === 'activating' && sub === 'auto-restart')
    return finding(
      name,
      'CRITICAL',
      `${RESULTS[result] ?? `it ended (${result})`}, and is about to be restarted${ofDay}`,
      journal,
      measured,
    );
  if (active === 'activating') return finding(name, 'WARNING', `it is only just starting (${sub})`, journal, measured);
  if (active === 'failed') {
    const [what, remedy] = (result === 'exit-code' ? FINAL_EXITS[exitStatus] : undefined) ?? [RESULTS[result] ?? result, journal];
    return finding(name, 'CRITICAL', `it failed: ${what}${ofDay}`, `${remedy}; then ${again}`, measured);
  }
  if (active === 'deactivating') return finding(name, 'CRITICAL', 'it is being stopped', `systemctl start ${id}`, measured);
  if (id !== MAIN_UNIT && file !== 'enabled') return null;
  const start = file === 'enabled' ? 'start' : 'enable --now';
  return finding(name, 'CRITICAL', 'it is stopped', `systemctl ${start} ${id}`, measured);
}

const MUCH_OF_MEMORY = 0.9;

/** Null: no limit, or nothing is known. `usedBytes` is what cannot simply be dropped. */
export function judgeMemory(unit: Unit, usedBytes: number | null): Verdict | null {
  const { id, memoryBytes, memoryMaxBytes } = unit;
  if (memoryBytes === null || memoryMaxBytes === null || memoryMaxBytes === 0 || usedBytes === null) return null;
  const name = `memory of ${basename(id, '.service')}`;
  const measured = { used_bytes: usedBytes, memory_current_bytes: memoryBytes, memory_max_bytes: memoryMaxBytes };
  const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)}`;
  const message = `${megabytes(usedBytes)} of ${megabytes(memoryMaxBytes)} MB`;
  if (usedBytes < MUCH_OF_MEMORY * memoryMaxBytes) return fine(name, message, measured);
  return finding(name, 'WARNING', message, `systemctl restart ${id}, or raise MemoryMax= with systemctl edit ${id}`, measured);
}

/** The service's unit, and those of its roles. */
export const unitCheck: Check = {
  name: 'unit',
  seconds: 20,
  run: async ({ context, counters, root, units }, signal) => {
    const answer = await units;
    if (answer.kind === 'none') return [note('unit edge-health', `${answer.why}: nothing is known of its unit`)];
    if (answer.kind === 'unknown') return [finding('unit edge-health', 'UNKNOWN', answer.why, 'systemctl status edge-health')];
    const boot = readBootId(`${root}/proc`) ?? '';
    const verdicts: Verdict[] = [];
    for (const unit of answer.units.filter(({ id }) => id !== SCHEDULER_UNIT)) {
      const grown = unit.load === 'loaded' ? counters.grown(`restarts of ${unit.id}`, boot, unit.restarts) : 0;
      // The journal may lie on a slow card and be large: asked when there is something to explain.
      const isAsked =
        grown > 0 || unit.active === 'failed' || unit.sub === 'auto-restart' || (context.trigger === 'manual' && unit.restarts > 0);
      const failures = isAsked ? await readFailures(unit.id, context.environment, signal) : null;
      const found = [judgeUnit({ unit, grown, failures }), judgeMemory(unit, await readUsedBytes(unit, root))];
      verdicts.push(...found.filter((verdict) => verdict !== null));
    }
    return verdicts;
  },
};
