import { fstatSync } from 'node:fs';
import { nodeOfAlertId } from '../alerts/alert.ts';
import { isLookAlike, markLookAlike } from '../look-alike.ts';
import type { Log, LogLevel } from '../ports.ts';
import { printable } from '../text.ts';
import { LogOutput } from './log-output.ts';

/** Priorities of sd-daemon(3), which the journal reads from the beginning of each line. */
const PRIORITY: Readonly<Record<LogLevel, number>> = { error: 3, warning: 4, notice: 5, info: 6, debug: 7 };

/** The journal splits longer lines (LineMax=, 48 KB) into several, each of which could begin with a priority. */
const MAX_CHARACTERS = 8192;

function value(key: string, field: unknown): string {
  let text = typeof field === 'string' ? field : (JSON.stringify(field) ?? String(field));
  if (key === 'node') text = markLookAlike(text);
  else if (key === 'alert_id' && isLookAlike(nodeOfAlertId(text))) text = markLookAlike(text);
  return /^[^\s"=]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/**
 * Formats an event as one line: `warning: message key=value key="with spaces"`; for the journal, with the priority, `<4>message …`. Texts may
 * be from untrusted sources; line breaks and invisible characters in them are escaped.
 */
export function formatLine(forJournal: boolean, level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(fields)
    .filter(([, field]) => field !== undefined && field !== null)
    .map(([key, field]) => ` ${key}=${value(key, field)}`)
    .join('');
  const text = printable(`${message}${pairs}`, MAX_CHARACTERS);
  return forJournal ? `<${PRIORITY[level]}>${text}\n` : `${level === 'info' ? '' : `${level}: `}${text}\n`;
}

/** Whether systemd has connected this file descriptor to the journal (JOURNAL_STREAM in systemd.exec(5)): a pipe or a file is for people. */
export function isJournal(fd: number): boolean {
  const stream = process.env['JOURNAL_STREAM'];
  if (!stream) return false;
  const { dev, ino } = fstatSync(fd);
  return stream === `${dev}:${ino}`;
}

export interface Logger {
  readonly log: Log;
  /** Sets the minimum level; less severe lines are dropped. */
  setLevel(level: LogLevel): void;
}

/** Logs to a stream such as process.stderr without waiting for its reader. If the reader closes it, the program continues without a log. */
export function createLogger({ fd }: { readonly fd: number }, level: LogLevel): Logger {
  let maxPriority = PRIORITY[level];
  const forJournal = isJournal(fd);
  const output = new LogOutput(fd, (lines) => formatLine(forJournal, 'warning', `${lines} log lines dropped`));
  return {
    log: (lineLevel, message, fields) => {
      if (PRIORITY[lineLevel] <= maxPriority) output.write(formatLine(forJournal, lineLevel, message, fields));
    },
    setLevel: (next) => {
      maxPriority = PRIORITY[next];
    },
  };
}

/** Messages remembered by a rate limit. */
const MAX_KINDS = 64;
const PERIOD_SECONDS = 60;

/**
 * Passes each message on at most once a minute, and adds the number of suppressed ones to the next: lines that senders on the network can
 * cause must not fill the journal. What varies belongs in the fields.
 */
export function rateLimited(log: Log, monotonicSeconds: () => number): Log {
  const lines = new Map<string, { readonly sinceSeconds: number; suppressed: number }>();
  return (level, message, fields = {}) => {
    const now = monotonicSeconds();
    const last = lines.get(message);
    if (last && now - last.sinceSeconds < PERIOD_SECONDS) {
      last.suppressed += 1;
      return;
    }
    if (lines.size >= MAX_KINDS && !last) lines.clear();
    lines.set(message, { sinceSeconds: now, suppressed: 0 });
    log(level, message, last && last.suppressed > 0 ? { ...fields, suppressed: last.suppressed } : fields);
  };
}
