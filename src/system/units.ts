import type { Log } from '../core/ports.ts';
import type { RunningItem, StepItem, StepRunner } from '../core/shutdown-ports.ts';
import { startProgram } from './program.ts';

/** systemd units to stop, in the given order. Each is waited for: `systemctl stop` ends when the unit has. */
export class UnitList implements StepRunner {
  readonly #units: readonly string[];
  readonly #environment: NodeJS.ProcessEnv;
  readonly #log: Log;

  constructor(units: readonly string[], environment: NodeJS.ProcessEnv, log: Log) {
    this.#units = units;
    this.#environment = environment;
    this.#log = log;
  }

  async list(): Promise<StepItem[]> {
    return this.#units.map((name) => ({ name, start: () => this.#stop(name) }));
  }

  #stop(unit: string): RunningItem {
    return startProgram({
      file: 'systemctl',
      parameters: ['--no-ask-password', 'stop', '--', unit],
      environment: this.#environment,
      onLine: (line) => this.#log('info', 'systemctl stop', { unit, says: line }),
    });
  }
}
