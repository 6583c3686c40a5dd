import type { ParseArgsOptionsConfig } from 'node:util';
import { type Arguments, parseArguments } from '../../src/core/platform/arguments.ts';

/** Exit codes of `edge-health harness` other than those of a verdict (engine/judgement.ts): 0 PASS, 1 FAIL, 2 INCOMPLETE. */
export const EXIT = {
  ok: 0,
  /** `status`: a run is unfinished, and no process is observing it. */
  unobserved: 3,
  usage: 64,
  /** The service does not respond, or there is no such run. */
  unavailable: 69,
  /** An unexpected error, after which systemd starts the unit again. It is not 1, which is a verdict. */
  internal: 70,
  /** Another process uses this folder. */
  inUse: 75,
  config: 78,
} as const;

/** Thrown when a command cannot be executed; the message contains the remedy. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export type Given = Arguments;

/** One command of `edge-health harness`. */
export interface HarnessCommand {
  readonly name: string;
  readonly summary: string;
  /** The synopsis after `edge-health harness `. */
  readonly usage: string;
  /** Text that --help prints below the usage, with the exit codes. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** The maximum number of positional arguments. */
  readonly positionals: number;
  /** Resolves with the exit code; rejects with Refusal. */
  run(given: Given): Promise<number>;
}

const HELP = { help: { type: 'boolean', short: 'h' } } as const;

export function argumentsOf(command: HarnessCommand, argv: readonly string[]): Given {
  const refused = (reason: string): Error => new Refusal(EXIT.usage, `${reason}; see: edge-health harness ${command.name} --help`);
  return parseArguments(argv, { ...HELP, ...command.options }, command.positionals, refused);
}

/** The text of an option, or null if it was not given. */
export function text({ options }: Given, name: string): string | null {
  return (options[name] as string | undefined) ?? null;
}
