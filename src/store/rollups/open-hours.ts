import { HOUR_MS } from '../../core/time/time.ts';
import type { Columns } from '../samples/chunk.ts';
import { type HourRecord, hourOf } from './tiers.ts';

/** Limit of finished hours kept in memory while they cannot be written: over a week of one node, plus the last hour of each node. */
const MAX_UNWRITTEN_HOURS = 200;

export interface HourEntry {
  readonly node: string;
  readonly hour: HourRecord;
}

/** The hours in memory: each node's hour in progress, and finished hours until they are written. */
export class OpenHours {
  readonly #nowMs: () => number;
  /** Returns the hour to continue: one that has samples already (after a restart or a clock step back), or an empty one. */
  readonly #resume: (node: string, hourMs: number) => HourRecord;
  readonly #addRow: (node: string, hour: HourRecord, columns: Columns, row: number) => void;
  readonly #open = new Map<string, { readonly hour: HourRecord; grewMs: number; grew: boolean }>();
  #finished: HourEntry[] = [];

  constructor(
    nowMs: () => number,
    resume: (node: string, hourMs: number) => HourRecord,
    addRow: (node: string, hour: HourRecord, columns: Columns, row: number) => void,
  ) {
    this.#nowMs = nowMs;
    this.#resume = resume;
    this.#addRow = addRow;
  }

  add(node: string, columns: Columns): void {
    for (let i = 0; i < columns.count; i += 1) {
      const hourMs = hourOf(columns.timestampMs[i] as number);
      let hour = this.#open.get(node)?.hour;
      if (hour?.hourMs !== hourMs) {
        hour = this.#takeFinished(node, hourMs) ?? this.#resume(node, hourMs);
        this.begin(node, hour);
      }
      this.#addRow(node, hour, columns, i);
    }
    const open = this.#open.get(node);
    if (!open) return;
    open.grewMs = this.#nowMs();
    open.grew = true;
  }

  /** Makes `hour` the node's open hour; the previous one is finished. */
  begin(node: string, hour: HourRecord): void {
    const before = this.#open.get(node);
    if (before) this.keep({ node, hour: before.hour });
    this.#open.set(node, { hour, grewMs: this.#nowMs(), grew: false });
  }

  keep(entry: HourEntry): void {
    this.#finished.push(entry);
    if (this.#finished.length > MAX_UNWRITTEN_HOURS + this.#open.size) this.#finished.shift();
  }

  of(node: string): HourRecord[] {
    const open = this.#open.get(node);
    const finished = this.#finished.filter((entry) => entry.node === node).map(({ hour }) => hour);
    return open ? [...finished, open.hour] : finished;
  }

  find(node: string, hourMs: number): HourRecord | null {
    return this.of(node).find((hour) => hour.hourMs === hourMs) ?? null;
  }

  /** Finished hours: a later one has begun, or no sample was added for an hour. */
  finished(): readonly HourEntry[] {
    for (const [node, { hour, grewMs }] of this.#open) {
      if (Math.abs(this.#nowMs() - grewMs) <= HOUR_MS) continue;
      this.keep({ node, hour });
      this.#open.delete(node);
    }
    return this.#finished;
  }

  /** Open hours that must be written because the database already has them, from before the clock was set back. */
  reopened(): HourEntry[] {
    return [...this.#open].filter(([, { hour, grew }]) => hour.wasWritten && grew).map(([node, { hour }]) => ({ node, hour }));
  }

  /** Must be called once the finished and reopened hours are written. */
  written(): void {
    this.#finished = [];
    for (const open of this.#open.values()) open.grew = false;
  }

  drop(node: string): void {
    this.#open.delete(node);
    this.#finished = this.#finished.filter((entry) => entry.node !== node);
  }

  /** Removes and returns all hours. */
  takeAll(): HourEntry[] {
    const all = [...this.#finished, ...[...this.#open].map(([node, { hour }]) => ({ node, hour }))];
    this.#finished = [];
    this.#open.clear();
    return all;
  }

  #takeFinished(node: string, hourMs: number): HourRecord | null {
    const index = this.#finished.findIndex((entry) => entry.node === node && entry.hour.hourMs === hourMs);
    return index < 0 ? null : (this.#finished.splice(index, 1)[0] as HourEntry).hour;
  }
}
