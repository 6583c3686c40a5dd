/** Without a token a client must send this header with the value `1` to download a snapshot: forms, links and images cannot. */
export const SNAPSHOT_HEADER = 'Edge-Health-Snapshot';

/** A finished copy of the database: an unlinked file, which is freed when it is closed. */
export interface Snapshot {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** Wall-clock start of the copy, which holds everything recorded up to then. */
  readonly takenMs: number;
  /** Must be called once; no other snapshot can be taken before. */
  close(): void;
}

/** `busy`: another snapshot is in progress; `no_space`: not enough disk space; `unavailable`: the store cannot write at present. */
export type SnapshotRefusal = 'busy' | 'no_space' | 'unavailable';

/** Why no snapshot could be taken; the message contains the remedy, if any. */
export class SnapshotRefused extends Error {
  override readonly name = 'SnapshotRefused';
  readonly why: SnapshotRefusal;

  constructor(why: SnapshotRefusal, message: string) {
    super(message);
    this.why = why;
  }
}
