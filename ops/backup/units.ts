import { basename, dirname } from 'node:path';
import { changeUnits } from '../../src/system/root-helper.ts';
import { showUnits } from '../../src/system/systemctl-show.ts';

/** What runs on a data folder, and can be stopped for a while. */
export interface Services {
  /** What is to be stopped, the service last. */
  readonly running: readonly string[];
  /** Where the service's tail is while it does not run; null: not in a runtime folder of systemd's. */
  readonly runtimeFolders: readonly string[];
  stop(): Promise<void>;
  start(): Promise<void>;
}

const PACKAGE_FOLDER = '/etc/edge-health';
const STANDARD = 'edge_health_config.yaml';
const PROPERTIES = ['Id', 'LoadState', 'ActiveState', 'RuntimeDirectory'] as const;
const RUNNING = ['active', 'activating', 'reloading'];

/** Units that use a configuration, the service last; none where it is not one of the package's. */
export function unitsOf(configFile: string): string[] {
  if (dirname(configFile) !== PACKAGE_FOLDER) return [];
  const role = /^(.+)_config\.yaml$/.exec(basename(configFile))?.[1];
  if (basename(configFile) === STANDARD) return ['edge-health-ops.service', 'edge-health.service'];
  return role === undefined ? [] : [`edge-health-ops@${role}.service`, `edge-health@${role}.service`];
}

async function change(environment: NodeJS.ProcessEnv, ...given: readonly string[]): Promise<void> {
  const { code, output } = await changeUnits(given, environment);
  if (code !== 0) throw new Error(`systemctl ${given.join(' ')} failed: ${output}`);
}

/** The units of an installed package as systemd has them. */
export async function systemdServices(configFile: string, environment: NodeJS.ProcessEnv): Promise<Services> {
  const units = unitsOf(configFile);
  const shown = units.length === 0 ? null : await showUnits(units, PROPERTIES, { environment });
  if (shown?.kind === 'failed') throw new Error(shown.why);
  const known = shown?.kind === 'units' ? shown.units.filter(({ LoadState }) => LoadState === 'loaded') : [];
  const running = units.filter((unit) => known.some(({ ActiveState, Id }) => Id === unit && RUNNING.includes(ActiveState)));
  const runtimeFolders = known.flatMap(({ RuntimeDirectory }) =>
    RuntimeDirectory === '' ? [] : [`/run/${RuntimeDirectory.split(' ')[0]}`],
  );
  return {
    running,
    runtimeFolders,
    stop: async () => {
      if (running.length > 0) await change(environment, 'stop', ...running);
    },
    start: async () => {
      if (running.length > 0) await change(environment, 'start', ...running.toReversed());
    },
  };
}
