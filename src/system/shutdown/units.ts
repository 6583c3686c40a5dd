import type { Log } from '../../core/ports.ts';
import type { EndedHow, RunningItem, StepItem, StepRunner } from '../../core/shutdown/shutdown-ports.ts';
import { startProgram } from '../program.ts';
import { askHelper } from './stop-helper.ts';

export interface UnitListOptions {
  readonly units: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Socket of the helper that runs as root. If it is null or absent, systemctl is run as this user. */
  readonly helperSocket: string | null;
}

/** Stops systemd units in the given order. `systemctl stop` waits until the unit has stopped. */
export class UnitList implements StepRunner {
  readonly #options: UnitListOptions;

  constructor(options: UnitListOptions) {
    this.#options = options;
  }

  async list(): Promise<StepItem[]> {
    return this.#options.units.map((name) => ({ name, start: () => this.#stop(name) }));
  }

  #stop(unit: string): RunningItem {
    const { environment, helperSocket, log } = this.#options;
    const direct = (): RunningItem => stopUnit(unit, environment, log);
    return helperSocket === null ? direct() : throughHelper(helperSocket, unit, direct);
  }
}

/** Runs `systemctl stop` as this process's user. */
export function stopUnit(unit: string, environment: NodeJS.ProcessEnv, log: Log): RunningItem {
  return startProgram({
    file: 'systemctl',
    parameters: ['--no-ask-password', 'stop', '--', unit],
    environment,
    onLine: (line) => log('info', 'systemctl stop', { unit, output: line }),
  });
}

function throughHelper(socketPath: string, unit: string, direct: () => RunningItem): RunningItem {
  const asked = askHelper(socketPath, `stop ${unit}`);
  let hasEnded = false;
  let isGivenUp = false;
  let own: RunningItem | null = null;
  const ended = (async (): Promise<string | null> => {
    const answer = await asked.answer;
    if (answer === 'absent' && !isGivenUp) own = direct();
    const problem = own ? withHint(await own.ended, socketPath) : typeof answer === 'object' && answer !== null ? answer.problem : null;
    hasEnded = true;
    return problem;
  })();
  const end = async (graceSeconds: number): Promise<EndedHow> => {
    if (own) return own.end(graceSeconds);
    if (hasEnded) return 'ended';
    isGivenUp = true;
    asked.close();
    return 'terminated';
  };
  return { ended, end };
}

/** Adds a hint to the error of a direct attempt, which most likely failed for lack of the helper. */
function withHint(problem: string | null, socketPath: string): string | null {
  return problem === null ? null : `${problem}; the helper socket ${socketPath} is missing (edge-health-stop.socket)`;
}
