import { join } from 'node:path';
import { SEVERITIES, type Severity } from '../../src/core/alert.ts';
import { ALERTS_FILE, type AlertRecord, recordsIn } from '../collect/alert-files.ts';
import { datedFiles } from '../lib/files.ts';
import type { Period } from './period.ts';

export interface AlertChanges {
  readonly files: number;
  /** Lines that are none of ours, torn ones included. */
  readonly foreign: number;
  /** Of the node: the last change of each episode that was open when the period began, and every change in it. */
  readonly openBefore: readonly AlertRecord[];
  readonly changes: readonly AlertRecord[];
  /** Open at the end of the period: of the node, and of all nodes by severity. */
  readonly open: readonly AlertRecord[];
  readonly openOfAll: Readonly<Record<Severity, number>>;
}

/** From all files: an episode that is still open may have begun long before the period. Times are those of the nodes' clocks. */
export async function alertChanges(folder: string, node: string, { fromMs, toMs }: Period, signal: AbortSignal): Promise<AlertChanges> {
  const files = (await datedFiles(folder, ALERTS_FILE)).map(({ name }) => name).sort();
  const last = new Map<string, AlertRecord>();
  const lastBefore = new Map<string, AlertRecord>();
  const changes: AlertRecord[] = [];
  let foreign = 0;
  const torn = (): void => {
    foreign += 1;
  };
  for (const name of files) {
    for await (const record of recordsIn(join(folder, name), { torn, signal })) {
      const ms = record === null ? Number.NaN : Date.parse(record.timestamp);
      if (record === null) foreign += 1;
      else if (ms < toMs) {
        keepLatest(last, record);
        if (ms < fromMs) keepLatest(lastBefore, record);
        else if (record.node === node) changes.push(record);
      }
    }
  }
  const isOpen = ({ resolved }: AlertRecord): boolean => !resolved;
  const isOfNode = (record: AlertRecord): boolean => record.node === node;
  const open = [...last.values()].filter(isOpen);
  return {
    files: files.length,
    foreign,
    openBefore: [...lastBefore.values()].filter(isOpen).filter(isOfNode),
    changes: changes.sort((a, b) => a.sequence - b.sequence),
    open: open.filter(isOfNode),
    openOfAll: Object.fromEntries(SEVERITIES.map((severity) => [severity, open.filter((of) => of.severity === severity).length])) as Record<
      Severity,
      number
    >,
  };
}

/** By the order in which they were recorded: clocks of nodes may be set back. */
function keepLatest(of: Map<string, AlertRecord>, record: AlertRecord): void {
  const known = of.get(record.alert_id);
  if (!known || known.sequence < record.sequence) of.set(record.alert_id, record);
}
