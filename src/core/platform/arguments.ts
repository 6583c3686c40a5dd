import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

export interface Arguments {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/**
 * Parses the arguments of a command. Throws `refused(reason)` for unknown options, extra arguments, and empty texts: an unset shell variable
 * leaves one, and the command would act as if the option had not been given.
 */
export function parseArguments(
  argv: readonly string[],
  options: ParseArgsOptionsConfig,
  positionals: number,
  refused: (reason: string) => Error,
): Arguments {
  let parsed: Arguments;
  try {
    const { positionals: given, values } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    parsed = { options: values as Arguments['options'], positionals: given };
  } catch (error) {
    throw refused((error as Error).message.split('. ')[0] ?? '');
  }
  const extra = parsed.positionals[positionals];
  if (extra !== undefined) throw refused(`unexpected argument "${extra}"`);
  const empty = Object.keys(parsed.options).find((name) => parsed.options[name] === '');
  if (empty !== undefined) throw refused(`--${empty} is empty: give a value, or leave the option out`);
  if (parsed.positionals.includes('')) throw refused('an argument is empty: give a value, or leave it out');
  return parsed;
}
