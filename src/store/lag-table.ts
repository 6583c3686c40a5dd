import type { DatabaseSync } from 'node:sqlite';
import type { TimeRange } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';

/** A chunk of a segment begins within this of where its node's lag says. Less would be noted often, more makes searching longer. */
export const LAG_SLACK_MS = 5 * MINUTE_MS;

interface Lag {
  /** From this segment on, until another one is noted. Several of one segment hold together. */
  readonly segment: number;
  /** Number of the segment minus the time of its samples. */
  readonly lagMs: number;
}

/** Until something is noted a node's clock agrees with this machine's. */
const AGREES: Lag = { segment: 0, lagMs: 0 };

/**
 * Where in time the samples of a segment lie. Raw samples are found by node and time; what came after a given moment is
 * sought by segment. An index by segment would cost flash 4 MB a day; a node's clock is set seldom, and only that is noted
 * here. Every chunk that was ever written lies in the ranges, whatever the clocks did.
 */
export class LagTable {
  readonly #db: DatabaseSync;
  /** Ascending by segment. */
  #lags: Map<number, Lag[]> | null = null;
  /** The last segment written of each node, as far as this run knows. */
  readonly #last = new Map<number, number>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** To be called for every chunk that is written, in its transaction. */
  note(nodeId: number, segment: number, fromMs: number): void {
    const lagMs = segment - fromMs;
    const inForce = inForceAt(this.#of(nodeId), segment);
    const last = this.#last.get(nodeId) ?? 0;
    this.#last.set(nodeId, Math.max(last, segment));
    if (inForce.some((lag) => Math.abs(lag.lagMs - lagMs) <= LAG_SLACK_MS)) return;
    // What is written already of this segment, or of later ones, relies on what was in force before.
    const stay = segment <= last ? inForce.filter((lag) => lag.segment < segment) : [];
    for (const lag of [...stay, { segment, lagMs }]) this.#insert(nodeId, { ...lag, segment });
  }

  /** Ranges of time, apart from each other, in which every chunk of the segments from `from` up to but without `to` begins. */
  ranges(nodeId: number, from: number, to: number): TimeRange[] {
    const lags = this.#of(nodeId);
    const starts = [...new Set([from, ...lags.map(({ segment }) => segment).filter((segment) => segment > from && segment < to)])];
    const ranges = starts.flatMap((start, i) =>
      inForceAt(lags, start).map(({ lagMs }) => ({
        fromMs: start - lagMs - LAG_SLACK_MS,
        toMs: (starts[i + 1] ?? to) - lagMs + LAG_SLACK_MS,
      })),
    );
    return joined(ranges);
  }

  /** Forgets what was noted in a transaction that was undone, or removed. */
  reload(): void {
    this.#lags = null;
  }

  #of(nodeId: number): readonly Lag[] {
    if (!this.#lags) {
      this.#lags = new Map();
      const rows = this.#db.prepare('SELECT node_id, segment, lag_ms FROM lag ORDER BY segment').all();
      for (const { node_id, segment, lag_ms } of rows as { node_id: number; segment: number; lag_ms: number }[]) {
        const lags = this.#lags.get(node_id) ?? [];
        lags.push({ segment, lagMs: lag_ms });
        this.#lags.set(node_id, lags);
      }
    }
    return this.#lags.get(nodeId) ?? [];
  }

  #insert(nodeId: number, lag: Lag): void {
    this.#db.prepare('INSERT OR IGNORE INTO lag VALUES (?, ?, ?)').run(nodeId, lag.segment, lag.lagMs);
    const lags = [...this.#of(nodeId), lag].sort((a, b) => a.segment - b.segment);
    this.#lags?.set(nodeId, lags);
  }
}

function inForceAt(lags: readonly Lag[], segment: number): readonly Lag[] {
  const since = lags.findLast((lag) => lag.segment <= segment)?.segment;
  return since === undefined ? [AGREES] : lags.filter((lag) => lag.segment === since);
}

function joined(ranges: readonly TimeRange[]): TimeRange[] {
  const apart: TimeRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = apart.at(-1);
    if (last && range.fromMs <= last.toMs) apart[apart.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, range.toMs) };
    else apart.push(range);
  }
  return apart;
}
