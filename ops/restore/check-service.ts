import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { type AggregateDocument, aggregateSchema, type StatusDocument, statusDocumentSchema } from '../../src/client/documents.ts';
import type { RestClient } from '../../src/client/rest.ts';
import { DAY_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { DATABASE_FILE } from '../backup/database.ts';
import type { DatabaseCounts, Manifest } from '../backup/manifest.ts';
import type { JobContext } from '../lib/job.ts';

/** Timeout for a started service to respond with its storage ok. */
const START_SECONDS = 90;
const POLL_MS = 250;
/**
 * A running service replaces older samples by one-minute averages. These contain the number of samples, but are not exact
 * at either end of a range.
 */
const EXACT_MS = 8 * DAY_MS;
const NEARLY = 0.99;
/** Older averages may have been removed. */
const COUNTED_MS = 80 * DAY_MS;

/** The number of samples that a running service has of a node in a range, which excludes its end. */
async function samplesOf(rest: RestClient, range: { node: string; from: string; to: string }, signal?: AbortSignal): Promise<number> {
  const options = { timeoutSeconds: 60, ...(signal && { signal }) };
  return (await rest.json<AggregateDocument>(`/health/aggregate?${new URLSearchParams(range)}`, { ...options, schema: aggregateSchema }))
    .samples_received;
}

/** Waits until the service returns its own sample and its storage is ok; after `seconds`, throws an error that gives the reason. */
async function waitForService(rest: RestClient, seconds: number): Promise<StatusDocument> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    try {
      await rest.json('/health');
      const status = await rest.json<StatusDocument>('/status', { schema: statusDocumentSchema });
      if (status.storage.state === 'ok') return status;
      throw new Error(`its storage is ${status.storage.state}: ${status.storage.error}`);
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`the service is not ready after ${seconds} s: ${(error as Error).message}`);
      await later(POLL_MS);
    }
  }
}

/** Checks that a newly started service works with the restored database; throws an error that gives the reason if not. */
export async function checkService(
  rest: RestClient,
  database: DatabaseCounts,
  { nowMs, seconds = START_SECONDS }: { readonly nowMs: number; readonly seconds?: number },
): Promise<{ readonly samples: number }> {
  const { storage } = await waitForService(rest, seconds);
  if (storage.quarantined.length > 0)
    throw new Error(`the service did not accept the restored database, and quarantined it: ${storage.quarantined.join(', ')}`);
  let found = 0;
  let expected = 0;
  let isExact = true;
  for (const { first, last, node, samples } of database.nodes) {
    // Samples of a node with a wrong clock may have any time, and may be removed at once.
    if (first === null || last === null || Date.parse(last) < nowMs - COUNTED_MS || Date.parse(last) > nowMs) continue;
    expected += samples;
    isExact &&= Date.parse(first) > nowMs - EXACT_MS;
    found += await samplesOf(rest, { node, from: first, to: isoUtc(Date.parse(last) + 1) });
  }
  if (found < expected * (isExact ? 1 : NEARLY)) throw new Error(`of ${expected} samples the service finds ${found}`);
  return { samples: found };
}

/**
 * The number of samples recorded since a backup was made, which would be kept with the current database; null if the
 * service does not respond.
 */
export async function samplesSince({ database, made }: Manifest, { dataFolder, nowMs, rest, signal }: JobContext): Promise<number | null> {
  if (!database) return 0;
  if (Date.parse(made) >= nowMs()) return null;
  const to = isoUtc(nowMs() + MINUTE_MS);
  try {
    const { nodes } = await rest.json<StatusDocument>('/status', { signal, schema: statusDocumentSchema });
    let samples = 0;
    for (const { node_name } of nodes) samples += await samplesOf(rest, { node: node_name, from: made, to }, signal);
    return samples;
  } catch {
    signal.throwIfAborted();
    // Without a database file there is no sample to lose; with one, the number is unknown.
    const hasDatabase = await stat(join(dataFolder, DATABASE_FILE)).catch(() => null);
    return hasDatabase === null ? 0 : null;
  }
}
