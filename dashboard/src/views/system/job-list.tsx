import type { VNode } from 'preact';
import { messages } from '../../messages/messages.ts';
import { Ring, STATUS_ICONS } from '../../page/icons.tsx';
import type { OpsState } from '../../types.ts';
import { type JobRow, summarizeJobs } from './jobs.ts';

/** The scheduled jobs of this machine. `isOutdated`: whether the data is the last known, not current. */
export function JobList({ ops, isOutdated, nowMs }: { ops: OpsState | null; isOutdated: boolean; nowMs: number }): VNode | null {
  const shown = summarizeJobs(ops, nowMs);
  if (!shown) return null;
  return (
    <section class="card jobs" aria-labelledby="jobs-title">
      <div class="bar">
        <h2 id="jobs-title">{messages.system.jobs.title}</h2>
        {isOutdated && <span class="known">{messages.shell.lastKnown}</span>}
      </div>
      {shown.problem && <p class="stopped">{shown.problem}</p>}
      <ul>
        {shown.rows.map((row) => (
          <li key={row.name} title={row.lines.join('\n')}>
            <span class="name">{row.name}</span>
            <Outcome row={row} />
            <span class="times">
              {row.facts.map((fact) => (
                <span key={fact}>{fact}</span>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Outcome({ row: { isRunning, outcome } }: { row: JobRow }): VNode {
  const Icon = outcome === null ? Ring : STATUS_ICONS[outcome];
  return (
    <span class={`state ${(outcome ?? 'none').toLowerCase()}`}>
      <Icon />
      {outcome === null ? (isRunning ? messages.system.jobs.running : messages.system.jobs.waiting) : messages.status[outcome].word}
    </span>
  );
}
