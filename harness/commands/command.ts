import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EXIT, Refusal } from '../run/refusal.ts';

export { EXIT, Refusal };

export interface Given {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/** One command of `edge-health harness`. */
export interface HarnessCommand {
  readonly name: string;
  readonly summary: string;
  /** After `edge-health harness `. */
  readonly usage: string;
  /** What --help prints below the usage, exit codes included. */
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** How many positional arguments it takes at most. */
  readonly positionals: number;
  /** Resolves with the exit code; rejects with Refusal. */
  run(given: Given): Promise<number>;
}

const HELP = { help: { type: 'boolean', short: 'h' } } as const;

export function argumentsOf(command: HarnessCommand, argv: readonly string[]): Given {
  try {
    const parsed = parseArgs({ args: [...argv], options: { ...HELP, ...command.options }, allowPositionals: true, strict: true });
    if (parsed.positionals.length > command.positionals)
      throw new Error(`unexpected argument "${parsed.positionals[command.positionals]}"`);
    return { options: parsed.values as Given['options'], positionals: parsed.positionals };
  } catch (error) {
    throw new Refusal(EXIT.usage, `${(error as Error).message.split('. ')[0]}; see: edge-health harness ${command.name} --help`);
  }
}

/** An option that is text; null: it was not given. */
export function text({ options }: Given, name: string): string | null {
  return (options[name] as string | undefined) ?? null;
}
