import { join } from 'node:path';
import * as v from 'valibot';
import { readIfThere, writeAtomically } from '../../src/system/atomic-file.ts';
import { makeFolder } from '../lib/folder.ts';
import type { JobStatus } from '../lib/job.ts';

const memorySchema = v.object({
  counters: v.record(v.string(), v.object({ of: v.string(), value: v.number() })),
  statuses: v.record(v.string(), v.picklist(['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'])),
});

/** What one check leaves to the next: counters as they stood, and how each thing was judged. */
export type Memory = v.InferOutput<typeof memorySchema>;

const fileOf = (dataFolder: string): string => join(dataFolder, 'ops', 'health_check.json');

/** Null: there was no check yet, or what it left cannot be read; then nothing is known to have changed. */
export async function readMemory(dataFolder: string): Promise<Memory | null> {
  try {
    const text = await readIfThere(fileOf(dataFolder));
    return text === null ? null : v.parse(memorySchema, JSON.parse(text));
  } catch {
    return null;
  }
}

/** Writes nothing where nothing has changed, which is nearly always: flash. */
export async function writeMemory(dataFolder: string, last: Memory | null, next: Memory): Promise<void> {
  const text = `${JSON.stringify(next)}\n`;
  if (last !== null && text === `${JSON.stringify(last)}\n`) return;
  const file = fileOf(dataFolder);
  await makeFolder(join(dataFolder, 'ops'));
  await writeAtomically(file, text);
}

/** Counters that only grow, until what they belong to begins anew. */
export class Counters {
  readonly #last: Memory['counters'] | null;
  readonly #next = new Map<string, { of: string; value: number }>();

  constructor(last: Memory | null) {
    this.#last = last?.counters ?? null;
  }

  /**
   * How much a counter has grown since the last check. `of` says what it belongs to, such as this boot: under another one it began
   * at zero. Of one that is seen for the first time nothing is known to have grown.
   */
  grown(name: string, of: string, value: number): number {
    this.#next.set(name, { of, value });
    const last = this.#last !== null && Object.hasOwn(this.#last, name) ? this.#last[name] : undefined;
    if (!last) return 0;
    return last.of === of && value >= last.value ? value - last.value : value;
  }

  /** As they stand now; of what could not be asked this time, as they stood. */
  get now(): Memory['counters'] {
    const all = new Map([...Object.entries(this.#last ?? {}), ...this.#next]);
    return Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Whether something is judged otherwise than last time; what was never judged before counts as OK. */
export function hasChanged(last: Memory | null, name: string, status: JobStatus): boolean {
  const before = last !== null && Object.hasOwn(last.statuses, name) ? last.statuses[name] : undefined;
  return (before ?? 'OK') !== status;
}
