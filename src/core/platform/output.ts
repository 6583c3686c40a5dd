import { constants } from 'node:os';
import { getSystemErrorMessage } from 'node:util';
import { printable, printableJson } from '../text.ts';

/** Exit code of a program killed by SIGPIPE, as a shell reports it. Node ignores the signal. */
const CLOSED_PIPE_EXIT = 128 + constants.signals.SIGPIPE;
/** EX_IOERR of sysexits(3). */
const OUTPUT_FAILED_EXIT = 74;

/** Ends the program if its standard output cannot be written; without a message if the reader has closed the pipe. */
export function exitWhenOutputFails(): void {
  process.stdout.on('error', ({ code, errno = 0, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(CLOSED_PIPE_EXIT);
    const reason = errno < 0 ? getSystemErrorMessage(errno) : message;
    process.stderr.write(`edge-health: cannot write the output: ${reason.charAt(0).toUpperCase()}${reason.slice(1)}\n`);
    process.exit(OUTPUT_FAILED_EXIT);
  });
  // The program continues if its standard error cannot be written.
  process.stderr.on('error', () => undefined);
}

const COLOURS: Readonly<Record<string, string>> = {
  OK: '32',
  WARNING: '33',
  CRITICAL: '31',
  ERROR: '31',
  UNKNOWN: '35',
  'IN PROGRESS': '31',
};
const STATUS = /^(\s*(?:Shutdown\s+)?)(OK|WARNING|CRITICAL|ERROR|UNKNOWN|IN PROGRESS)\b/;

/** Escapes a text, which may be from an untrusted source. The journal would interpret `<0>` at the beginning of a line as a priority. */
function asLine(text: string): string {
  return printable(text).replace(/^<(?=[0-7]>)/, '\\x3c');
}

/** Prints each text as exactly one line of standard output. On a terminal, a status at the beginning is coloured. */
export function printLines(lines: readonly string[]): void {
  const { isTTY } = process.stdout;
  const shown = lines.map(asLine).map((line) => {
    return isTTY ? line.replace(STATUS, (_, before: string, word: string) => `${before}\x1b[1;${COLOURS[word]}m${word}\x1b[0m`) : line;
  });
  if (shown.length > 0) process.stdout.write(`${shown.join('\n')}\n`);
}

/** Lines of a table whose columns are as wide as their widest cell. All rows have as many cells as the first. */
export function alignedRows(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return cells.join('  ').trimEnd();
  });
}

/** Prints a JSON document on standard output; invisible characters are escaped. */
export function printJson(value: unknown, indent = 0): void {
  process.stdout.write(`${printableJson(value, indent)}\n`);
}

/** Prints an error, which may have several lines, on standard error. */
export function printProblem(text: string): void {
  process.stderr.write(`${text.split('\n').map(asLine).join('\n')}\n`);
}
