import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** An invalid command line. The message states the correct usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Arguments {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/** Parses a command's arguments. Throws UsageError with the command's name for unknown options and extra arguments. */
export function readArguments(command: string, argv: readonly string[], options: ParseArgsOptionsConfig, positionals: number): Arguments {
  try {
    const parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    if (parsed.positionals.length > positionals) throw new Error(`unexpected argument "${parsed.positionals[positionals]}"`);
    return { options: parsed.values as Arguments['options'], positionals: parsed.positionals };
  } catch (error) {
    const reason = (error as Error).message.split('. ')[0] ?? '';
    throw new UsageError(`${reason}; see: edge-health ${command} --help`);
  }
}
