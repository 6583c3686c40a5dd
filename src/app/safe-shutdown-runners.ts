import type { Log } from '../core/ports.ts';
import type { StepRunner } from '../core/shutdown-ports.ts';
import { HookFolder } from '../system/hooks.ts';
import { UnitList } from '../system/units.ts';
import type { ShutdownSettings } from './safe-shutdown-settings.ts';

/** What runs the steps that consist of several things. */
export interface ShutdownRunners {
  readonly hooks: StepRunner;
  readonly units: StepRunner;
}

/** The real ones: executables of a folder, and systemd. */
export function machineRunners(environment: NodeJS.ProcessEnv, log: Log): (settings: ShutdownSettings) => ShutdownRunners {
  const uid = process.geteuid?.() ?? 0;
  return ({ hooksFolder, hooksRequired, stopUnits }) => ({
    hooks: new HookFolder({ folder: hooksFolder, required: hooksRequired, environment, log, uid }),
    units: new UnitList(stopUnits, environment, log),
  });
}
