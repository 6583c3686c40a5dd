import type { Log, LogLevel } from '../core/ports.ts';
import { printable } from '../core/text.ts';

/** Priorities of sd-daemon(3): the journal reads them off the front of each line. */
const PRIORITY: Readonly<Record<LogLevel, number>> = { error: 3, warning: 4, notice: 5, info: 6, debug: 7 };

/** The journal takes a longer line (LineMax=, 48 KB) for several, of which each may begin with a priority. */
const MAX_CHARACTERS = 8192;

function value(field: unknown): string {
  const text = typeof field === 'string' ? field : (JSON.stringify(field) ?? String(field));
  return /^[^\s"=]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/**
 * One event as one line: `<6>message key=value key="with spaces"`. A terminal gets the level's name instead of the number. Texts come
 * from outside as well: whatever they hold, it is one line in which every character can be seen.
 */
export function formatLine(terminal: boolean, level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(fields)
    .filter(([, field]) => field !== undefined && field !== null)
    .map(([key, field]) => ` ${key}=${value(field)}`)
    .join('');
  const text = printable(`${message}${pairs}`, MAX_CHARACTERS);
  return terminal ? `${level === 'info' ? '' : `${level}: `}${text}\n` : `<${PRIORITY[level]}>${text}\n`;
}

export interface Logger {
  readonly log: Log;
  /** Lines less severe than this are dropped from now on. */
  setLevel(level: LogLevel): void;
}

export function createLogger(stream: NodeJS.WriteStream, level: LogLevel): Logger {
  let least = PRIORITY[level];
  // Whoever read the log may go away (a closed pipe): the service goes on without.
  stream.on('error', () => undefined);
  return {
    log: (lineLevel, message, fields) => {
      if (PRIORITY[lineLevel] <= least) stream.write(formatLine(stream.isTTY === true, lineLevel, message, fields));
    },
    setLevel: (next) => {
      least = PRIORITY[next];
    },
  };
}
