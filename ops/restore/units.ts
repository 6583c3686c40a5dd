import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { changeUnits } from '../../src/client/root-helper.ts';
import { showUnits } from '../../src/client/systemctl-show.ts';
import { takeLock } from '../../src/core/files/lock.ts';
import { Refused } from './restore-files.ts';

/** The services that run on a data folder and can be stopped for a while. */
export interface Services {
  /** Services to stop, the main service last. */
  readonly running: readonly string[];
  /** Runtime folders of systemd that may contain the service's spool. */
  readonly runtimeFolders: readonly string[];
  stop(): Promise<void>;
  start(): Promise<void>;
}

const PROPERTIES = ['Id', 'LoadState', 'ActiveState', 'RuntimeDirectory'] as const;
const RUNNING = ['active', 'activating', 'reloading'];

/** Units that use a configuration file, the service last; none if the file does not belong to the package. */
export function unitsOf(configFile: string): string[] {
  const role = /^\/etc\/edge-health\/([^/]+)_config\.yaml$/.exec(configFile)?.[1];
  if (role === undefined) return [];
  // The scheduler has the configuration of the main service; a role has none.
  return role === 'edge_health' ? ['edge-health-ops.service', 'edge-health.service'] : [`edge-health@${role}.service`];
}

/** The units of an installed package, according to systemd. */
export async function systemdServices(configFile: string, environment: NodeJS.ProcessEnv): Promise<Services> {
  const units = unitsOf(configFile);
  const shown = units.length === 0 ? null : await showUnits(units, PROPERTIES, { environment });
  if (shown?.kind === 'failed') throw new Error(shown.why);
  const known = shown?.kind === 'units' ? shown.units.filter(({ LoadState }) => LoadState === 'loaded') : [];
  const running = units.filter((unit) => known.some(({ ActiveState, Id }) => Id === unit && RUNNING.includes(ActiveState)));
  const runtimeFolders = known.flatMap(({ RuntimeDirectory }) =>
    RuntimeDirectory === '' ? [] : [`/run/${RuntimeDirectory.split(' ')[0]}`],
  );
  const change = async (verb: string, changed: readonly string[]): Promise<void> => {
    if (changed.length === 0) return;
    const { code, output } = await changeUnits([verb, ...changed], environment);
    if (code !== 0) throw new Error(`systemctl ${verb} ${changed.join(' ')} failed: ${output}`);
  };
  return { running, runtimeFolders, stop: () => change('stop', running), start: () => change('start', running.toReversed()) };
}

/** Locks the data folder against every service until the returned lock is closed. */
export async function lockDataFolder(dataFolder: string): Promise<DatabaseSync> {
  const file = join(dataFolder, 'lock');
  const lock = takeLock(file);
  if (lock) return lock;
  const pids = await lockHolders(file);
  const holder = pids.length === 0 ? 'a service' : `process ${pids.join(', ')}`;
  const kill = pids.length === 0 ? '' : `, or: kill ${pids.join(' ')}`;
  throw new Refused(`${holder} is using ${dataFolder}; stop it (Ctrl-C where it was started${kill}), then restore`);
}

/** Processes that hold a lock on a file, as far as the kernel lists them. */
async function lockHolders(file: string): Promise<number[]> {
  try {
    const { ino } = await stat(file);
    const locks = (await readFile('/proc/locks', 'utf8')).matchAll(/\s(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s/g);
    return [...new Set([...locks].filter(([, , inode]) => inode === String(ino)).map(([, pid]) => Number(pid)))];
  } catch {
    return [];
  }
}
