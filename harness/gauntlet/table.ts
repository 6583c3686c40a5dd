import type { Machine } from '../../bench/support/machine.ts';
import type { Fault } from './fault.ts';
import type { Observation } from './observation.ts';

/** What one fault came to. */
export interface Tried {
  readonly fault: Pick<Fault, 'name' | 'group' | 'core' | 'expected'>;
  readonly suite: string;
  /** That trying it took. */
  readonly seconds: number;
  readonly observation: Observation;
}

export interface Gauntlet {
  /** When it began, ISO 8601. */
  readonly began: string;
  readonly package: string;
  readonly machine: Machine;
  readonly kernel: string;
  readonly hertz: number;
  readonly tried: readonly Tried[];
  /** Names of faults that were asked for and not tried, as it was interrupted. */
  readonly untried: readonly string[];
}

const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim();
const quantity = (value: number | null, digits = 0): string => (value === null ? '–' : value.toFixed(digits));

function row({ fault, observation }: Tried): string {
  const { observed, recoverySeconds, samplesLost, alertsLost, held } = observation;
  const cells = [fault.name, fault.expected, observed, quantity(recoverySeconds, 1), quantity(samplesLost), quantity(alertsLost)];
  return `| ${[...cells.map(cell), held ? 'held' : '**FAILED**'].join(' | ')} |`;
}

export function renderTable(tried: readonly Tried[]): string {
  const head = '| fault | expected | observed | recovery, s | samples lost | alerts lost | |\n|---|---|---|---:|---:|---:|---|';
  return [head, ...tried.map(row)].join('\n');
}

function details({ fault, suite, seconds, observation }: Tried): string {
  const checks = observation.checks.map(
    ({ what, holds, found }) => `- ${holds ? 'holds' : '**does not hold**'}: ${what}${found ? ` — ${cell(found)}` : ''}`,
  );
  const notes = (observation.notes ?? []).map((note) => `- ${cell(note)}`);
  const error = observation.error === null ? [] : ['', '```', observation.error, '```'];
  const journal =
    observation.journal === undefined
      ? []
      : ['', 'The journal of the unit, its end, without alerts:', '', '```', observation.journal, '```'];
  return [
    `### ${fault.name}`,
    '',
    `${fault.group}, ${suite}, ${seconds.toFixed(0)} s.`,
    '',
    ...checks,
    ...notes,
    ...error,
    ...journal,
    '',
  ].join('\n');
}

/** The page gauntlet.md. */
export function renderPage(gauntlet: Gauntlet): string {
  const { began, machine, kernel, hertz, tried, untried } = gauntlet;
  const failed = tried.filter(({ observation }) => !observation.held).length;
  const { cpu, cores, memoryGigabytes, os } = machine;
  return `# Gauntlet

${tried.length} faults against the installed package ${gauntlet.package} in containers with a real systemd, begun ${began}: ${failed === 0 ? 'everything held' : `${failed} FAILED`}${untried.length > 0 ? `; interrupted, not tried: ${untried.join(', ')}` : ''}.

Machine: ${cpu}, ${cores} cores, ${memoryGigabytes} GB, ${os}, ${kernel}. The service published ${hertz} statuses a second unless a fault says otherwise.

${renderTable(tried)}

- **recovery**: from the fault's coming, or where it lasts from its going, until everything serves again as users see it: REST answers with a sample of now, the store writes, the topic is heard. –: nothing ever ceased to.
- **samples lost**: slots of the sampling grid for which the history has no sample, from before the fault until all was well again, the time included in which nothing ran.
- **alerts lost**: times that a cause of an alert came or went and the history has no change of an alert for it, and changes that somebody received and the history has not.

## What had to hold

${tried.map(details).join('\n')}`;
}
