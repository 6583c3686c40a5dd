import { type Holding, HoldingCount } from '../../harness/watch/holding.ts';
import { storedSource } from '../../harness/watch/stored.ts';
import type { RestClient } from '../../src/client/rest.ts';
import { ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Period } from './period.ts';
import { NEAR_SECONDS, type PlacedRow } from './timeline.ts';

/** What the service keeps in memory yet. */
const SETTLED_MS = 5000;

/**
 * Looks at the rows that hold data, those with an answer, by the index of the row after which each ends: one, and one more after every
 * time that the clock was put back, since time stamps come twice then. Where nothing had been collected before the period, they begin
 * with the first row: what came before it is not known.
 */
export function looksAtRows(rows: readonly PlacedRow[], { fromMs, toMs }: Period, hasEarlier: boolean): Map<number, Holding> {
  const looks = new Map<number, Holding>();
  const firstMs = rows[0]?.ms ?? toMs;
  let from = hasEarlier || firstMs - fromMs <= NEAR_SECONDS * 1000 ? fromMs : firstMs;
  let begin = 0;
  for (const [i, { ms }] of rows.entries()) {
    const next = rows[i + 1];
    if (next && next.ms >= ms) continue;
    const count = new HoldingCount('collected', from, next ? ms + 1 : Math.max(toMs, ms + 1));
    for (const row of rows.slice(begin, i + 1)) if (row.answered) count.add(row.ms);
    looks.set(i, count.result());
    if (!next) break;
    from = next.ms;
    begin = i + 1;
  }
  return looks;
}

export interface StoredLook {
  readonly look: Holding | null;
  /** Why not; null: it was looked. */
  readonly problem: string | null;
}

/** A look at the samples that the service has stored of a period. What is older than its oldest sample is not known any more. */
export async function lookAtStored(rest: RestClient, node: string, { fromMs, toMs }: Period, nowMs: number): Promise<StoredLook> {
  try {
    const { nodes, storage } = await rest.json<StatusDocument>('/status');
    const local = nodes.find((of) => of.local)?.node_name;
    if (local !== node) return { look: null, problem: `the service at ${rest.base} is ${local}, not ${node}` };
    const oldestMs = Date.parse(storage.oldest_sample ?? '');
    const from = Number.isNaN(oldestMs) ? fromMs : Math.min(toMs, Math.max(fromMs, oldestMs));
    const look = await storedSource({ rest, node })(from, Math.max(from, Math.min(toMs, nowMs - SETTLED_MS)));
    return { look, problem: look === null ? 'the service did not give its stored samples' : null };
  } catch (error) {
    if (!(error instanceof ServiceUnreachable || error instanceof ServiceRefused)) throw error;
    return { look: null, problem: `the service does not answer: ${error.message}` };
  }
}
