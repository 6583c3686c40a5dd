import type { Log } from '../core/ports.ts';
import type { EndedHow, RunningItem, StepItem, StepRunner } from '../core/shutdown-ports.ts';
import { startProgram } from './program.ts';
import { askHelper } from './stop-helper.ts';

export interface UnitListOptions {
  readonly units: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Where root's helper listens, which may what this user may not; where it is not there, or null, this user tries by itself. */
  readonly helperSocket: string | null;
}

/** systemd units to stop, in the given order. Each is waited for: `systemctl stop` ends when the unit has. */
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
    onLine: (line) => log('info', 'systemctl stop', { unit, says: line }),
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

/** What was tried without the helper failed, and most likely for want of it. */
function withHint(problem: string | null, socketPath: string): string | null {
  return problem === null ? null : `${problem}; and ${socketPath}, where root's helper is asked, is not there (edge-health-stop.socket)`;
}
