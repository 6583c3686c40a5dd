import type { ParseArgsOptionsConfig } from 'node:util';
import type { Arguments } from './arguments.ts';

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
  /** Resolves with the exit code. */
  run(given: Arguments): Promise<number>;
}
