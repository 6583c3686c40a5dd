import type { ParseArgsOptionsConfig } from 'node:util';
import type { Arguments } from '../core/platform/arguments.ts';
import type { RosArguments } from './ros-arguments.ts';

/** Exit codes, from sysexits(3) if it defines one; `status` has its own. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 64,
  /** The service is not reachable, or a requirement is not installed. */
  unavailable: 69,
  /** The data folder is in use. */
  inUse: 75,
  noPermission: 77,
  config: 78,
} as const;

export interface GivenArguments extends Arguments {
  /** Null: there was no `--ros-args`. */
  readonly ros: RosArguments | null;
}

/** A command of the program. */
export interface Command {
  readonly summary: string;
  /** Synopsis of the command, without `edge-health`. */
  readonly usage: string;
  /** Text that --help prints below the usage. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** Maximum number of positional arguments. */
  readonly positionals: number;
  /** Whether it accepts `--ros-args`, which `ros2 run` and `ros2 launch` append to the arguments. */
  readonly takesRosArguments?: boolean;
  /** Resolves with the exit code. */
  run(given: GivenArguments): Promise<number>;
}
