import { endOfUnit } from './causes.ts';
import type { RunEnd } from './supervisor.ts';

/** What of systemd's own messages about a unit tells how its runs ended (systemd.journal-fields(7)). */
export const JOURNAL_FIELDS = ['MESSAGE_ID', 'INVOCATION_ID', 'UNIT_RESULT', 'EXIT_CODE', 'EXIT_STATUS', 'COMMAND'] as const;

/** Messages, as sd-messages.h has them. */
const STOPPING = 'de5b426a63be47a7b6ac3eaac82e2f6f';
const PROCESS_EXIT = '98e322203f7a4ed290d09fe03c09fe15';
const SUCCEEDED = '7ad2d189f7e94e70a38c781354912448';
const FAILED = 'd9b373ed55a64feb8242e02dbe79a49c';
const OUT_OF_MEMORY = 'fe6faa94e7774663a0da52717891d8ef';

/** One run of a unit, as the journal has it. */
export interface JournalRun {
  readonly invocation: string;
  readonly end: RunEnd;
  /** When the main process was found to have ended, ms since the epoch; null: not told, as after a stop that was asked for. */
  readonly endedMs: number | null;
}

interface Building {
  result: string | null;
  code: string | null;
  status: string | null;
  asked: boolean;
  outOfMemory: boolean;
  endedMs: number | null;
}

type Entry = Readonly<Partial<Record<(typeof JOURNAL_FIELDS)[number] | '__REALTIME_TIMESTAMP', unknown>>>;

/** The runs that `journalctl --output=json` tells of, oldest first. What is no entry is passed over. */
export function parseJournal(text: string): JournalRun[] {
  const runs = new Map<string, Building>();
  for (const line of text.split('\n')) {
    const entry = parsed(line);
    const invocation = entry?.INVOCATION_ID;
    if (!entry || typeof invocation !== 'string') continue;
    let run = runs.get(invocation);
    if (!run) {
      run = { result: null, code: null, status: null, asked: false, outOfMemory: false, endedMs: null };
      runs.set(invocation, run);
    }
    add(run, entry);
  }
  return [...runs].map(([invocation, { endedMs, ...found }]) => ({ invocation, end: endOfUnit(found), endedMs }));
}

function add(run: Building, { COMMAND, EXIT_CODE, EXIT_STATUS, MESSAGE_ID, UNIT_RESULT, ...entry }: Entry): void {
  if (MESSAGE_ID === STOPPING) {
    // After the end of the main process it is systemd's own way to the next start.
    if (run.endedMs === null && run.result === null) run.asked = true;
  } else if (MESSAGE_ID === OUT_OF_MEMORY) {
    run.outOfMemory = true;
  } else if (MESSAGE_ID === SUCCEEDED) {
    run.result ??= 'success';
  } else if (MESSAGE_ID === FAILED) {
    if (typeof UNIT_RESULT === 'string') run.result ??= UNIT_RESULT;
  } else if (MESSAGE_ID === PROCESS_EXIT) {
    // Others are processes beside the main one, such as that of a reload.
    if (COMMAND !== undefined && COMMAND !== 'ExecStart') return;
    run.code = typeof EXIT_CODE === 'string' ? EXIT_CODE : null;
    run.status = typeof EXIT_STATUS === 'string' ? EXIT_STATUS : null;
    run.endedMs = Number(entry.__REALTIME_TIMESTAMP) / 1000;
  }
}

function parsed(line: string): Entry | null {
  try {
    return line === '' ? null : (JSON.parse(line) as Entry);
  } catch {
    return null;
  }
}
