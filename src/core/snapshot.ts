/** Without a token a client must send this header to have a snapshot: no form, link or image of a web page can. Its value is `1`. */
export const SNAPSHOT_HEADER = 'Edge-Health-Snapshot';

/** A finished copy of the database: a file without a name, which is gone as soon as it is closed. */
export interface Snapshot {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** When it was begun: it holds everything recorded up to then, wall clock. */
  readonly takenMs: number;
  /** Must be called once; until then there is no other snapshot. */
  close(): void;
}

/** `busy`: another snapshot is in progress; `no_room`: not enough disk space; `unavailable`: the store cannot, for now. */
export type SnapshotRefusal = 'busy' | 'no_room' | 'unavailable';

/** Why there is no snapshot; the message says what to do where something can be done. */
export class SnapshotRefused extends Error {
  override readonly name = 'SnapshotRefused';
  readonly why: SnapshotRefusal;

  constructor(why: SnapshotRefusal, message: string) {
    super(message);
    this.why = why;
  }
}
