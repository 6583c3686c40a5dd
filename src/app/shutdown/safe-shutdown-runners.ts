import type { Log } from '../../core/ports.ts';
import type { PowerControl, StepRunner } from '../../core/shutdown/shutdown-ports.ts';
import type { Clocks } from '../../core/time/time.ts';
import { HookFolder } from '../../system/shutdown/hooks.ts';
import { Logind } from '../../system/shutdown/logind.ts';
import { HELPER_SOCKET } from '../../system/shutdown/stop-helper.ts';
import { UnitList } from '../../system/shutdown/units.ts';
import type { ShutdownSettings } from './safe-shutdown-settings.ts';

/** Runners of the steps that consist of several items. */
export interface ShutdownRunners {
  readonly hooks: StepRunner;
  readonly units: StepRunner;
}

/** Runners for the executables of a folder and for systemd units. */
export function machineRunners(environment: NodeJS.ProcessEnv, log: Log): (settings: ShutdownSettings) => ShutdownRunners {
  const uid = process.geteuid?.() ?? 0;
  return ({ hooksFolder, hooksRequired, stopUnits }) => ({
    hooks: new HookFolder({ folder: hooksFolder, required: hooksRequired, environment, log, uid }),
    units: new UnitList({ units: stopUnits, environment, log, helperSocket: helperSocket() }),
  });
}

/** Shuts the machine down through systemd-logind. */
export function machinePower(environment: NodeJS.ProcessEnv, log: Log, clocks: Clocks): PowerControl {
  const monotonicSeconds = (): number => clocks.monotonicSeconds();
  return new Logind({ environment, log, monotonicSeconds, helperSocket: helperSocket() });
}

/** Root needs no helper; the helper would also use the package's configuration instead of that of a manual run. */
function helperSocket(): string | null {
  return process.geteuid?.() === 0 ? null : HELPER_SOCKET;
}
