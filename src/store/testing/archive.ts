import { join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Archive } from '../database/archive.ts';
import { type Row, toColumns } from './rows.ts';

/** An archive with its own clock that can be closed and opened again as by a restart. */
export class TestArchive {
  readonly path: string;
  readonly maxBytes: number;
  readonly quarantined: { readonly path: string; readonly reason: string }[] = [];
  nowMs: number;
  /** Takes effect at the next restart. */
  localNode = 'robot';
  archive: Archive;
  #segment = 0;

  constructor(path: string, nowMs: number, maxBytes = 1e9) {
    this.path = path;
    this.nowMs = nowMs;
    this.maxBytes = maxBytes;
    this.archive = this.unopened();
    this.archive.open();
  }

  /** Number of the segment added last. */
  get segment(): number {
    return this.#segment;
  }

  /** Appends rows as a segment of their own, in parts as they arrive from the main thread. */
  add(node: string, rows: readonly Row[], partLength = 1000): number {
    this.#segment += 1;
    for (let i = 0; i < rows.length; i += partLength) this.archive.append(this.#segment, node, toColumns(rows.slice(i, i + partLength)));
    return this.#segment;
  }

  commit(): void {
    this.archive.commit(this.#segment);
  }

  close(): void {
    if (this.archive.db.isOpen) this.archive.close();
  }

  restart(): void {
    this.close();
    this.archive = this.unopened();
    this.archive.open();
  }

  unopened(path = this.path): Archive {
    const { maxBytes } = this;
    return new Archive({
      path,
      maxBytes,
      localNode: this.localNode,
      nowMs: () => this.nowMs,
      onQuarantined: (aside, reason) => this.quarantined.push({ path: aside, reason }),
    });
  }
}

export function testArchive(t: Test, nowMs: number, maxBytes?: number): TestArchive {
  const opened = new TestArchive(join(temporaryFolder(t), 'edge-health.db'), nowMs, maxBytes);
  t.teardown(() => opened.close());
  return opened;
}
