/** The result of a fault run: what the tests return, and the page that is made of it. */
import type { Machine } from '../../../testkit/machine/machine-info.ts';

export interface FaultDescription {
  readonly name: string;
  readonly family: string;
  readonly core: boolean;
  readonly expected: string;
}

/** Something that must hold. */
export interface Check {
  readonly what: string;
  readonly holds: boolean;
  /** What was found instead, if it does not hold. */
  readonly found?: string;
}

/** A figure that should stay within a limit, and depends on the machine as well. */
export interface Target {
  readonly what: string;
  readonly met: boolean;
  readonly found: string;
}

/** The row of a fault in the table, beside its name and what was expected. */
export interface Figures {
  /** What happened, in a sentence. */
  readonly observed: string;
  /** Seconds from the start of the fault (where it lasts: from its end) until everything serves again; null: nothing ever stopped. */
  readonly recoverySeconds: number | null;
  /** Null: cannot be counted, and `observed` gives the reason. */
  readonly samplesLost: number | null;
  readonly alertsLost: number | null;
  /** Details below the table, such as which alerts were lost. */
  readonly notes?: readonly string[];
}

export interface FaultResult extends Figures {
  /** Every check held, there was at least one, and nothing was thrown. */
  readonly passed: boolean;
  /** Duration of the whole test. */
  readonly seconds: number;
  readonly checks: readonly Check[];
  readonly targets?: readonly Target[];
  /** What was thrown; null: nothing. */
  readonly error: string | null;
  /** The last messages of the unit and of systemd, if a check did not hold. */
  readonly journal?: string;
}

/** What a test returns: first without a result, and with it once the fault has run. */
export interface FaultRecord {
  readonly fault: FaultDescription;
  readonly suite: string;
  readonly result: FaultResult | null;
}

export interface FaultRun {
  /** When it began, ISO 8601. */
  readonly began: string;
  /** Version of the package. */
  readonly package: string;
  readonly machine: Machine;
  readonly kernel: string;
  readonly hertz: number;
  readonly faults: readonly FaultRecord[];
}

type Done = FaultRecord & { readonly result: FaultResult };

const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim();
const quantity = (value: number | null, digits = 0): string => (value === null ? '–' : value.toFixed(digits));

export const isDone = (record: FaultRecord): record is Done => record.result !== null;

function row({ fault, result }: Done): string {
  const { observed, recoverySeconds, samplesLost, alertsLost, passed } = result;
  const cells = [fault.name, fault.expected, observed, quantity(recoverySeconds, 1), quantity(samplesLost), quantity(alertsLost)];
  return `| ${[...cells.map(cell), passed ? 'passed' : '**FAILED**'].join(' | ')} |`;
}

export function renderTable(records: readonly FaultRecord[]): string {
  const head = '| fault | expected | observed | recovery, s | samples lost | alerts lost | |\n|---|---|---|---:|---:|---:|---|';
  return [head, ...records.filter(isDone).map(row)].join('\n');
}

function details({ fault, suite, result }: Done): string {
  const { checks, targets = [], notes = [], error, journal } = result;
  return [
    `### ${fault.name}`,
    '',
    `${fault.family}, ${suite}, ${result.seconds.toFixed(0)} s.`,
    '',
    ...checks.map(({ what, holds, found }) => `- ${holds ? 'holds' : '**does not hold**'}: ${what}${found ? ` (${cell(found)})` : ''}`),
    ...targets.map(({ what, met, found }) => `- target ${met ? 'met' : '**not met**'}: ${what} (${cell(found)})`),
    ...notes.map((note) => `- ${cell(note)}`),
    ...(error === null ? [] : ['', '```', error, '```']),
    ...(journal === undefined ? [] : ['', 'The end of the journal of the unit, without alerts:', '', '```', journal, '```']),
    '',
  ].join('\n');
}

/** The page faults.md. */
export function renderPage(run: FaultRun): string {
  const { cpu, cores, memoryGigabytes, os } = run.machine;
  const done = run.faults.filter(isDone);
  const notRun = run.faults.filter((record) => !isDone(record)).map(({ fault }) => fault.name);
  const failed = done.filter(({ result }) => !result.passed).length;
  const unmet = done.flatMap(({ result }) => result.targets ?? []).filter(({ met }) => !met).length;
  const verdict = [
    failed === 0 ? 'every check held' : `${failed} FAILED`,
    ...(unmet > 0 ? [`${unmet} targets not met on this machine`] : []),
    ...(notRun.length > 0 ? [`not run: ${notRun.join(', ')}`] : []),
  ].join('; ');
  return `# Fault run

${done.length} faults injected into the installed package ${run.package} in containers with a real systemd, begun ${run.began}: ${verdict}.

Machine: ${cpu}, ${cores} cores, ${memoryGigabytes} GB, ${os}, ${run.kernel}. The service published ${run.hertz} statuses per second unless a fault states otherwise.

${renderTable(done)}

- **recovery**: from the start of the fault, or where it lasts from its end, until everything serves again as users see it: REST returns a current sample, the store writes, the topic has data. –: nothing ever stopped.
- **samples lost**: sampling intervals for which the history has no sample, from before the fault until all was well again, including the time in which no service ran.
- **alerts lost**: times that a cause of an alert began or ended and the history has no change of an alert for it, and changes that an observer received and the history does not have.

## What had to hold

${done.map(details).join('\n')}`;
}
