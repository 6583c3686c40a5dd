import { formatDuration } from '../../src/core/duration.ts';
import { printable } from '../../src/core/text.ts';
import type { Judgement, Quantity } from '../engine/judgement.ts';

/** How a run stands. */
export interface Standing {
  readonly nodeName: string;
  readonly url: string;
  readonly folder: string;
  readonly plannedSeconds: number;
  readonly watchedSeconds: number;
  readonly absentSeconds: number;
  /** As judged last; empty: not yet. */
  readonly judgements: readonly Judgement[];
  /** Restarts of the service since the run began. */
  readonly restarts: number;
  /** Severities of the open alerts, by metric. */
  readonly openAlerts: readonly { readonly severity: string; readonly metric: string }[];
  readonly entries: number;
  readonly head: string;
  /** Of the record: what could not be written. */
  readonly problem: string | null;
}

function amount({ unit, value }: Pick<Quantity, 'unit' | 'value'>): string {
  if (value === null) return 'not known yet';
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 1 ? 3 : Math.abs(value) < 99 || Math.abs(value) > 1000 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}

const SIGNS = { '<': '<', '<=': '≤', '>': '>', '>=': '≥' } as const;

/** `99.98 % (> 99 %)` */
export function measuredOf({ limit, measured }: Judgement): string {
  return `${amount(measured)} (${SIGNS[limit.comparison]} ${amount(limit)})`;
}

const counted = (count: number, one: string): string => (count === 0 ? `no ${one}s` : count === 1 ? `1 ${one}` : `${count} ${one}s`);

function alerts({ openAlerts }: Standing): string {
  if (openAlerts.length === 0) return 'no open alerts';
  return `open: ${openAlerts.map(({ metric, severity }) => `${severity} ${metric}`).join(', ')}`;
}

function share({ plannedSeconds, watchedSeconds }: Standing): string {
  // Cut off: 100 % is the end.
  return `${Math.min(100, Math.floor((watchedSeconds / plannedSeconds) * 1000) / 10).toFixed(1)} %`;
}

function times(standing: Standing): string {
  const { absentSeconds, plannedSeconds, watchedSeconds } = standing;
  const left = Math.max(0, Math.ceil(plannedSeconds - watchedSeconds));
  const absent = absentSeconds >= 1 ? `, absent ${formatDuration(absentSeconds, 'h')}` : '';
  return `${formatDuration(watchedSeconds, 'h')} of ${formatDuration(plannedSeconds, 'h')} (${share(standing)}), ${formatDuration(left, 'h')} to go${absent}`;
}

const COLOURS: Readonly<Record<string, string>> = { PASS: '32', FAIL: '31', INCOMPLETE: '33' };

/** What a terminal shows, a line each. */
export function block(standing: Standing, columns: number, colours: boolean): string[] {
  const { entries, folder, head, judgements, nodeName, problem, restarts, url } = standing;
  const verdict = (word: string): string => (colours ? `\x1b[1;${COLOURS[word]}m${word.padEnd(11)}\x1b[0m` : word.padEnd(11));
  // Only what is plain is cut, so that no colour is left open.
  const fit = (text: string, used = 0): string => printable(text, Math.max(1, columns - used - 1));
  const rows = judgements.map((judgement) => {
    const title = judgement.title.padEnd(15);
    return `  ${title} ${verdict(judgement.verdict)} ${fit(measuredOf(judgement), 31)}`;
  });
  return [
    fit(`${nodeName} at ${url}: ${times(standing)}`),
    ...(rows.length > 0 ? rows : [fit('  the criteria are judged after the first minute')]),
    fit(`  ${counted(restarts, 'restart')}; ${alerts(standing)}`),
    fit(`  ${folder}: ${entries} entries, head ${head.slice(0, 16)}`),
    ...(problem === null ? [] : [fit(`  ${problem}`)]),
  ];
}

/** The same in one line, for logs. */
export function line(standing: Standing): string {
  return inOneLine(standing, (judgement) => `${judgement.title} ${judgement.verdict} ${measuredOf(judgement)}`);
}

/** The same for `systemctl status`, shorter. */
export function statusLine(standing: Standing): string {
  return inOneLine(standing, ({ title, verdict }) => `${title} ${verdict}`);
}

function inOneLine(standing: Standing, criterion: (judgement: Judgement) => string): string {
  return [
    times(standing),
    ...standing.judgements.map(criterion),
    counted(standing.restarts, 'restart'),
    alerts(standing),
    ...(standing.problem ? [standing.problem] : []),
  ].join('; ');
}
