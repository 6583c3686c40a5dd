import type { HealthStatus } from '../../core/health-status.ts';
import type { Log, RecordCursor } from '../../core/ports.ts';
import { type Columns, copyRows, emptyColumns, mapColumns } from '../samples/chunk.ts';
import type { Leftover } from '../thread/protocol.ts';
import type { WaitingSegment } from './backlog.ts';
import { type Spool, setRow } from './spool.ts';

/** Length of a segment, and thus the maximum loss in a power cut. */
const SEGMENT_SECONDS = 60;
/** At high rates a segment ends earlier, which bounds the spool. */
const SEGMENT_BYTES = 2 * 1024 * 1024;
/** Largest batch sent to the store's thread. */
const MAX_BATCH = 1000;

/** Samples of one node in the segment, with the buffers to transfer. */
interface NodeBatch {
  readonly segment: number;
  readonly node: string;
  readonly columns: Columns;
  readonly isNewcomer: boolean;
  readonly buffers: readonly ArrayBuffer[];
}

/**
 * Records into the current segment: every record is written to the spool synchronously, and samples are also collected in batches for the
 * store's thread. If the spool cannot be written, the error is logged; samples are then lost only if the process is killed.
 */
export class SegmentRecorder {
  readonly #log: Log;
  readonly #monotonicSeconds: () => number;
  readonly #batches = new Map<string, { readonly batch: Batch; isNewcomer: boolean }>();
  #spool: Spool | null = null;
  #samples = 0;
  /** Samples of the segment whose line the spool did not accept. */
  #unspooled = 0;
  #startSeconds = 0;
  /** Sequence number of the last record within the segment. */
  #sequence = 0;
  #isBatchFull = false;
  #spoolFailed = false;

  constructor(log: Log, monotonicSeconds: () => number) {
    this.#log = log;
    this.#monotonicSeconds = monotonicSeconds;
  }

  get isOpen(): boolean {
    return this.#spool !== null;
  }

  get segment(): number {
    return this.#spool?.segment ?? 0;
  }

  get samples(): number {
    return this.#samples;
  }

  get isBatchFull(): boolean {
    return this.#isBatchFull;
  }

  /** Whether the segment has reached its age or size limit. */
  get isOver(): boolean {
    const age = this.#monotonicSeconds() - this.#startSeconds;
    return age >= SEGMENT_SECONDS || (this.#spool?.bytes ?? 0) >= SEGMENT_BYTES;
  }

  /** Enables recording; begin() must follow. */
  open(spool: Spool): void {
    this.#spool = spool;
  }

  /** Begins a segment with this number or a later one. */
  begin(atLeast = 0): void {
    this.#startSeconds = this.#monotonicSeconds();
    this.#sequence = 0;
    try {
      this.#spool?.begin(Math.max(Date.now(), atLeast));
    } catch (error) {
      this.#log('error', 'cannot create a spool segment', { folder: this.#spool?.folder, error: (error as Error).message });
    }
  }

  /** Ends the segment, whose batches must have been sent, and returns its size. */
  end(): WaitingSegment {
    const waiting = { segment: this.segment, bytes: this.#spool?.bytes ?? 0, samples: this.#samples, unspooled: this.#unspooled };
    this.#samples = 0;
    this.#unspooled = 0;
    return waiting;
  }

  /** Writes a record other than a sample and returns its cursor. */
  write(line: string): RecordCursor {
    this.#sequence += 1;
    try {
      this.#spool?.write(line);
      this.#spoolFailed = false;
    } catch (error) {
      // Samples still reach the database with their batch; only a kill before that loses them.
      if (!this.#spoolFailed)
        this.#log('error', 'cannot write the spool', { folder: this.#spool?.folder, error: (error as Error).message });
      this.#spoolFailed = true;
    }
    return { segment: this.segment, sequence: this.#sequence };
  }

  /** Writes a sample and returns its cursor. `line` is the status as JSON. */
  add(status: HealthStatus, line: string, timestampMs: number, isNewcomer: boolean): RecordCursor {
    const cursor = this.write(line);
    const entry = this.#batches.get(status.node_name) ?? { batch: new Batch(), isNewcomer };
    this.#batches.set(status.node_name, entry);
    entry.isNewcomer = isNewcomer;
    const { batch } = entry;
    batch.add(status, timestampMs, cursor.sequence);
    this.#samples += 1;
    if (this.#spoolFailed) this.#unspooled += 1;
    if (batch.count >= MAX_BATCH) this.#isBatchFull = true;
    return cursor;
  }

  takeBatches(): NodeBatch[] {
    this.#isBatchFull = false;
    const batches = [...this.#batches].filter(([, { batch }]) => batch.count > 0);
    return batches.map(([node, { batch, isNewcomer }]) => ({ segment: this.segment, node, isNewcomer, ...batch.take() }));
  }

  /** Drops a node's samples that were not sent yet. */
  drop(node: string): void {
    this.#batches.delete(node);
  }

  /** Drops the batches; the next thread loads their samples from the spool. */
  dropBatches(): void {
    this.#isBatchFull = false;
    this.#batches.clear();
  }

  /** Begins a new segment and returns all earlier ones found in the spool. */
  beginAfterRestart(): Leftover[] {
    this.dropBatches();
    this.begin();
    return (
      this.#spool?.leftovers((path, error) =>
        this.#log('error', 'cannot read the spool of an earlier run', { path, error: error.message }),
      ) ?? []
    );
  }

  /** Removes a segment that is in the database. If that fails, the next start recognizes and skips it. */
  remove(segment: number): void {
    try {
      this.#spool?.remove(segment);
    } catch (error) {
      this.#log('error', 'cannot remove written spool segments', { folder: this.#spool?.folder, error: (error as Error).message });
    }
  }

  /** Removes the samples from a segment and returns its remaining size in bytes. */
  dropSamples(segment: number): number {
    try {
      return this.#spool?.dropSamples(segment) ?? 0;
    } catch (error) {
      this.#log('error', 'cannot truncate the spool', { folder: this.#spool?.folder, error: (error as Error).message });
      return 0;
    }
  }

  close(): void {
    this.#spool?.close();
  }
}

const FIRST_CAPACITY = 64;

/** Growing buffer of one node's samples for the store's thread. */
export class Batch {
  #columns = emptyColumns(FIRST_CAPACITY);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(status: HealthStatus, timestampMs: number, sequence: number): void {
    if (this.#count === this.#columns.timestampMs.length) {
      const larger = emptyColumns(this.#count * 2);
      copyRows(larger, 0, { ...this.#columns, count: this.#count });
      this.#columns = larger;
    }
    setRow(this.#columns, this.#count, status, sequence, timestampMs);
    this.#count += 1;
  }

  /** The samples added since the last call, trimmed to size, with the buffers to transfer. */
  take(): { columns: Columns; buffers: ArrayBuffer[] } {
    const count = this.#count;
    const columns = mapColumns(this.#columns, count, (column) => column.slice(0, count));
    this.#count = 0;
    if (this.#columns.timestampMs.length > 4096) this.#columns = emptyColumns(FIRST_CAPACITY);
    const arrays = [columns.timestampMs, ...columns.metrics, columns.status, columns.sequence];
    return { columns, buffers: arrays.map((array) => array.buffer as ArrayBuffer) };
  }
}
