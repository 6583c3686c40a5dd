import { printable } from '../../src/core/text.ts';
import { type JobStatus, worst } from '../lib/job.ts';

export type Measured = string | number | boolean | null | readonly string[];

/** What was found out about one thing. */
export interface Verdict {
  /** Of the thing: `disk /`. The same from run to run, and without a colon: notifications tell findings apart by it. */
  readonly name: string;
  readonly status: JobStatus;
  readonly message: string;
  /** What to do; null: nothing. */
  readonly remedy: string | null;
  /** Worth a line although nothing is wrong. */
  readonly isNote: boolean;
  readonly measured: Readonly<Record<string, Measured>>;
}

type Values = Readonly<Record<string, Measured>>;

export function fine(name: string, message: string, measured: Values = {}): Verdict {
  return { name, status: 'OK', message, remedy: null, isNote: false, measured };
}

/** Nothing is wrong, and whoever reads should know why there is nothing more to say. */
export function note(name: string, message: string, measured: Values = {}): Verdict {
  return { ...fine(name, message, measured), isNote: true };
}

export function finding(name: string, status: Exclude<JobStatus, 'OK'>, message: string, remedy: string, measured: Values = {}): Verdict {
  return { name, status, message, remedy, isNote: false, measured };
}

const WORST_FIRST: readonly JobStatus[] = ['CRITICAL', 'WARNING', 'UNKNOWN', 'OK'];
const MAX_CHARACTERS = 400;

/** Worst first, notes before what is plainly well; otherwise in the order given. */
export function sorted(verdicts: readonly Verdict[]): Verdict[] {
  const weight = ({ isNote, status }: Verdict): number => 2 * WORST_FIRST.indexOf(status) + (isNote ? 0 : 1);
  return verdicts.toSorted((a, b) => weight(a) - weight(b));
}

/** Names and messages come from outside as well: they neither begin a line of their own nor fill a screen. */
export function lineOf({ message, name, remedy, status }: Verdict): string {
  return `${status}  ${printable(`${name}: ${message}${remedy === null ? '' : `; ${remedy}`}`, MAX_CHARACTERS)}`;
}

export interface Overall {
  readonly status: JobStatus;
  /** `2 of 11 checks: disk /, container web`, or `11 checks`. */
  readonly summary: string;
}

const NAMED = 5;

export function overall(verdicts: readonly Verdict[]): Overall {
  const status = worst(verdicts.map((verdict) => verdict.status));
  const found = sorted(verdicts).filter((verdict) => verdict.status !== 'OK');
  const checks = verdicts.length === 1 ? '1 check' : `${verdicts.length} checks`;
  if (found.length === 0) return { status, summary: checks };
  const names = found.slice(0, NAMED).map(({ name }) => name);
  const more = found.length > NAMED ? ` and ${found.length - NAMED} more` : '';
  return { status, summary: printable(`${found.length} of ${checks}: ${names.join(', ')}${more}`, MAX_CHARACTERS) };
}
