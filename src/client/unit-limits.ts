import { HOMES, sandboxProblem } from '../core/files/data-folder.ts';
import { isWithin } from '../core/mounts.ts';
import { LOW_PORT_CAPABILITY } from '../core/platform/privileges.ts';
import { showUnits, type UnitProperties } from './systemctl-show.ts';

export const MAIN_UNIT = 'edge-health.service';
export const SCHEDULER_UNIT = 'edge-health-ops.service';

/** The unit that runs the service of a configuration file. A role has its own unit. */
export function unitOfConfig(file: string): string {
  const role = /^\/etc\/edge-health\/([^/]+)_config\.yaml$/.exec(file)?.[1];
  return role === undefined || role === 'edge_health' ? MAIN_UNIT : `edge-health@${role}.service`;
}

const LIMITS = [
  ...(['Id', 'LoadState', 'ProtectSystem', 'ProtectHome', 'StateDirectory'] as const),
  ...(['ReadWritePaths', 'BindPaths', 'AmbientCapabilities', 'PrivateUsers'] as const),
] as const;
/** What a unit's sandbox allows, with its drop-ins. */
export type UnitLimits = UnitProperties<(typeof LIMITS)[number]>;

/** The limits of the installed units that use a configuration: the service and the scheduler. */
export async function limitsOf(configFile: string, environment: NodeJS.ProcessEnv): Promise<readonly UnitLimits[]> {
  const shown = await showUnits([unitOfConfig(configFile), SCHEDULER_UNIT], LIMITS, { environment });
  return shown.kind === 'units' ? shown.units.filter(({ LoadState }) => LoadState === 'loaded') : [];
}

/** Why the sandbox of some units keeps them from writing to a folder, with the remedy; null: it does not. */
export function forbiddenFolder(folder: string, units: readonly UnitLimits[]): string | null {
  const forbidden = units.filter((unit) => isForbidden(folder, unit)).map(({ Id }) => Id.replace(/\.service$/, ''));
  return forbidden.length > 0 ? sandboxProblem(folder, forbidden) : null;
}

function isForbidden(folder: string, { BindPaths, ProtectHome, ProtectSystem, ReadWritePaths, StateDirectory }: UnitLimits): boolean {
  const pathsOf = (list: string): string[] => list.split(' ').filter((path) => path !== '');
  const bound = pathsOf(BindPaths).map((entry) => entry.split(':')[1] ?? entry);
  const allowed = pathsOf(ReadWritePaths).map((path) => path.replace(/^[-+]+/, ''));
  const state = pathsOf(StateDirectory).map((name) => `/var/lib/${name}`);
  const isIn = (folders: readonly string[]): boolean => folders.some((one) => isWithin(folder, one));
  if (isIn([...bound, ...state])) return false;
  // ReadWritePaths= has no effect below a folder that is hidden.
  if (isIn(HOMES) && ProtectHome !== 'no') return ProtectHome !== 'read-only' || !isIn(allowed);
  return ProtectSystem === 'strict' && !isIn(allowed);
}

/** Whether a unit may listen on ports below 1024. */
export function mayUseLowPorts({ AmbientCapabilities, PrivateUsers }: UnitLimits): boolean {
  return AmbientCapabilities.toUpperCase().includes(LOW_PORT_CAPABILITY) && PrivateUsers !== 'yes';
}
