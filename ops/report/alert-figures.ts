import { join } from 'node:path';
import { SEVERITIES, type Severity } from '../../src/core/alert.ts';
import { ALERTS_FILE, type AlertRecord, parseAlertRecord } from '../collect/alert-record.ts';
import { datedFiles } from '../support/dated-files.ts';
import { linesOf } from '../support/lines.ts';
import type { Period } from './period.ts';

type BySeverity = Readonly<Record<Severity, number>>;

export interface OpenEpisode {
  readonly alert_id: string;
  readonly node: string;
  readonly metric: string;
  readonly severity: Severity;
  readonly began: string | null;
}

export interface AlertFigures {
  readonly files: number;
  /** Lines that are none of ours, torn ones included. */
  readonly foreign: number;
  readonly changes: number;
  /** Episodes that were open at some time of the period, by the worst severity that they had in it. */
  readonly episodes: BySeverity;
  /** Open at the end of the period. */
  readonly open: readonly OpenEpisode[];
}

interface Episode {
  last: AlertRecord;
  worst: Severity;
  inPeriod: boolean;
}

const none = (): Record<Severity, number> => ({ WARNING: 0, ERROR: 0, CRITICAL: 0 });

/** From all files: an episode that is still open may have begun long before the period. Times are those of the nodes' clocks. */
export async function alertFigures(folder: string, period: Period, signal: AbortSignal): Promise<AlertFigures> {
  const files = (await datedFiles(folder, ALERTS_FILE)).map(({ name }) => name).sort();
  const episodes = new Map<string, Episode>();
  let [foreign, changes] = [0, 0];
  const torn = (): void => {
    foreign += 1;
  };
  for (const name of files) {
    for await (const lines of linesOf(join(folder, name), { torn, signal })) {
      for (const record of lines.map(parseAlertRecord)) {
        if (record === null) foreign += 1;
        else if (note(episodes, record, period)) changes += 1;
      }
    }
  }
  const seen = [...episodes.values()].filter(({ inPeriod, last }) => inPeriod || !last.resolved);
  const count = none();
  for (const { worst } of seen) count[worst] += 1;
  const open = seen
    .filter(({ last }) => !last.resolved)
    .map(({ last: { alert_id, began, metric, node, severity } }) => ({ alert_id, node, metric, severity, began }));
  return { files: files.length, foreign, changes, episodes: count, open };
}

/** Whether the change is one of the period. */
function note(episodes: Map<string, Episode>, record: AlertRecord, { fromMs, toMs }: Period): boolean {
  const ms = Date.parse(record.timestamp);
  if (ms >= toMs) return false;
  const inPeriod = ms >= fromMs;
  const known = episodes.get(record.alert_id);
  if (!known) {
    episodes.set(record.alert_id, { last: record, worst: record.severity, inPeriod });
    return inPeriod;
  }
  // What it was before the period counts only as far as it still was so when the period began.
  const others = inPeriod ? known.worst : record.severity;
  known.worst = SEVERITIES.indexOf(others) > SEVERITIES.indexOf(record.severity) ? others : record.severity;
  if (record.sequence > known.last.sequence) known.last = record;
  known.inPeriod ||= inPeriod;
  return inPeriod;
}
