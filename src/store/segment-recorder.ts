import type { HealthStatus } from '../core/health-status.ts';
import type { Log, Mark } from '../core/ports.ts';
import type { WaitingSegment } from './backlog.ts';
import { Batch } from './batch.ts';
import type { Columns } from './chunk.ts';
import type { Leftover } from './protocol.ts';
import type { Tail } from './tail.ts';

/** A segment is written to the database this often: what a power cut may take. */
const SEGMENT_SECONDS = 60;
/** At high frequencies a segment ends earlier, to bound the tail. */
const SEGMENT_BYTES = 2 * 1024 * 1024;
/** Samples are handed to the thread in batches of at most this many. */
const MAX_BATCH = 1000;

/** Samples of one node in the segment, with the buffers to transfer. */
export interface NodeBatch {
  readonly segment: number;
  readonly node: string;
  readonly columns: Columns;
  readonly isNewcomer: boolean;
  readonly buffers: readonly ArrayBuffer[];
}

/**
 * The segment that is being recorded: every record goes into the tail at once, samples besides into batches for the store's
 * thread. A tail that cannot be written is logged, and costs samples only if the process is killed meanwhile.
 */
export class SegmentRecorder {
  readonly #log: Log;
  readonly #monotonicSeconds: () => number;
  readonly #batches = new Map<string, { readonly batch: Batch; isNewcomer: boolean }>();
  #tail: Tail | null = null;
  #samples = 0;
  #startSeconds = 0;
  /** Number of the record within the segment that was recorded last. */
  #order = 0;
  #isBatchFull = false;
  #tailFailed = false;

  constructor(log: Log, monotonicSeconds: () => number) {
    this.#log = log;
    this.#monotonicSeconds = monotonicSeconds;
  }

  get isOpen(): boolean {
    return this.#tail !== null;
  }

  get segment(): number {
    return this.#tail?.segment ?? 0;
  }

  /** Samples of the segment so far. */
  get samples(): number {
    return this.#samples;
  }

  /** Whether it is time to hand the batches over. */
  get isBatchFull(): boolean {
    return this.#isBatchFull;
  }

  /** Whether it is time for the next segment. */
  get isOver(): boolean {
    const age = this.#monotonicSeconds() - this.#startSeconds;
    return age >= SEGMENT_SECONDS || (this.#tail?.bytes ?? 0) >= SEGMENT_BYTES;
  }

  /** From here on it records, once a segment has begun. */
  open(tail: Tail): void {
    this.#tail = tail;
  }

  /** Begins a segment, with this number or a later one. */
  begin(atLeast = 0): void {
    this.#startSeconds = this.#monotonicSeconds();
    this.#order = 0;
    try {
      this.#tail?.begin(Math.max(Date.now(), atLeast));
    } catch (error) {
      this.#log('error', 'cannot create a spool segment', { folder: this.#tail?.folder, error: (error as Error).message });
    }
  }

  /** Ends the segment, whose batches were handed over; what it holds. */
  end(): WaitingSegment {
    const waiting = { segment: this.segment, bytes: this.#tail?.bytes ?? 0, samples: this.#samples };
    this.#samples = 0;
    return waiting;
  }

  /** Writes a record that is no sample; its place among all that is recorded. */
  write(line: string): Mark {
    this.#order += 1;
    try {
      this.#tail?.write(line);
      this.#tailFailed = false;
    } catch (error) {
      // Samples still reach the database with their batch; only a kill before that would lose them now.
      if (!this.#tailFailed) this.#log('error', 'cannot write the spool', { folder: this.#tail?.folder, error: (error as Error).message });
      this.#tailFailed = true;
    }
    return { segment: this.segment, order: this.#order };
  }

  /** Writes a sample; its place. `line` is the status as JSON. */
  add(status: HealthStatus, line: string, timestampMs: number, isNewcomer: boolean): Mark {
    const mark = this.write(line);
    const entry = this.#batches.get(status.node_name) ?? { batch: new Batch(), isNewcomer };
    this.#batches.set(status.node_name, entry);
    entry.isNewcomer = isNewcomer;
    const { batch } = entry;
    batch.add(status, timestampMs, mark.order);
    this.#samples += 1;
    if (batch.count >= MAX_BATCH) this.#isBatchFull = true;
    return mark;
  }

  takeBatches(): NodeBatch[] {
    this.#isBatchFull = false;
    const batches = [...this.#batches].filter(([, { batch }]) => batch.count > 0);
    return batches.map(([node, { batch, isNewcomer }]) => ({ segment: this.segment, node, isNewcomer, ...batch.take() }));
  }

  /** Forgets a node's samples that were not handed over. */
  drop(node: string): void {
    this.#batches.delete(node);
  }

  /** Forgets the batches: whoever comes next takes them from the tail. */
  dropBatches(): void {
    this.#isBatchFull = false;
    this.#batches.clear();
  }

  /** Begins a segment of its own; everything before it is a leftover, which is returned. */
  startOver(): Leftover[] {
    this.dropBatches();
    this.#samples = 0;
    this.begin();
    return (
      this.#tail?.leftovers((path, error) =>
        this.#log('error', 'cannot read the spool of an earlier run', { path, error: error.message }),
      ) ?? []
    );
  }

  /** Removes a segment that is in the database. One that stays is found there at the next start, and passed over. */
  remove(segment: number): void {
    try {
      this.#tail?.remove(segment);
    } catch (error) {
      this.#log('error', 'cannot remove written spool segments', { folder: this.#tail?.folder, error: (error as Error).message });
    }
  }

  /** Cuts a segment down to alerts and requests of a shutdown; the bytes that are left. */
  keepRare(segment: number): number {
    try {
      return this.#tail?.keepRare(segment) ?? 0;
    } catch (error) {
      this.#log('error', 'cannot truncate the spool', { folder: this.#tail?.folder, error: (error as Error).message });
      return 0;
    }
  }

  close(): void {
    this.#tail?.end();
  }
}
