import type { ParseArgsOptionsConfig } from 'node:util';
import type { Arguments } from './arguments.ts';
import type { RosArguments } from './ros-arguments.ts';

export interface GivenArguments extends Arguments {
  /** Null: there was no `--ros-args`. */
  readonly ros: RosArguments | null;
}

/** One command of the program. */
export interface Command {
  readonly summary: string;
  /** After `edge-health `: how it is called. */
  readonly usage: string;
  /** What --help prints below the usage. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** How many positional arguments it takes at most. */
  readonly positionals: number;
  /** Whether `ros2 run` and `ros2 launch` may start it, which put `--ros-args` behind its own arguments. */
  readonly takesRosArguments?: boolean;
  /** Resolves with the exit code. */
  run(given: GivenArguments): Promise<number>;
}
