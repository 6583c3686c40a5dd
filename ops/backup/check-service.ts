import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import type { RestClient } from '../../src/client/rest.ts';
import type { AggregateDocument, StatusDocument } from '../../src/http/api/schema.ts';
import { DATABASE_FILE } from './database.ts';
import type { DatabaseCounts } from './manifest.ts';

const POLL_MS = 250;
/** Once it runs, the service keeps averages of minutes instead of older samples; they count the samples, but not at either end. */
const EXACT_MS = 8 * 86_400_000;
const NEARLY = 0.99;
/** Older averages may have been removed. */
const COUNTED_MS = 80 * 86_400_000;

/** Samples that a running service has of a node in a range, which excludes its end. */
async function samplesOf(rest: RestClient, node: string, from: string, to: string, signal?: AbortSignal): Promise<number> {
  const query = new URLSearchParams({ node, from, to });
  const { samples_received } = await rest.json<AggregateDocument>(`/health/aggregate?${query}`, {
    timeoutSeconds: 60,
    ...(signal ? { signal } : {}),
  });
  return samples_received;
}

/** Waits until the service answers with a sample of its own and its storage is ok; throws with what is wrong after `seconds`. */
async function waitForService(rest: RestClient, seconds: number, signal: AbortSignal): Promise<StatusDocument> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    try {
      await rest.json('/health', { signal });
      const status = await rest.json<StatusDocument>('/status', { signal });
      if (status.storage.state === 'ok') return status;
      throw new Error(`its storage is ${status.storage.state}: ${status.storage.error}`);
    } catch (error) {
      signal.throwIfAborted();
      if (performance.now() > deadline) throw new Error(`the service is not ready after ${seconds} s: ${(error as Error).message}`);
      await later(POLL_MS, undefined, { signal });
    }
  }
}

/** Checks that a service just started works with the restored database; throws with what is wrong. */
export async function checkService(
  rest: RestClient,
  database: DatabaseCounts,
  { nowMs, seconds, signal }: { readonly nowMs: number; readonly seconds: number; readonly signal: AbortSignal },
): Promise<{ readonly samples: number }> {
  const { storage } = await waitForService(rest, seconds, signal);
  if (storage.set_aside.length > 0)
    throw new Error(`the service did not accept the restored database, and quarantined it: ${storage.set_aside.join(', ')}`);
  let found = 0;
  let expected = 0;
  let isExact = true;
  for (const { first, last, node, samples } of database.nodes) {
    // Samples of a node with a wrong clock lie anywhere in time, and may be removed at once.
    if (first === null || last === null || Date.parse(last) < nowMs - COUNTED_MS || Date.parse(last) > nowMs) continue;
    expected += samples;
    isExact &&= Date.parse(first) > nowMs - EXACT_MS;
    found += await samplesOf(rest, node, first, new Date(Date.parse(last) + 1).toISOString(), signal);
  }
  if (found < expected * (isExact ? 1 : NEARLY)) throw new Error(`of ${expected} samples the service finds ${found}`);
  return { samples: found };
}

interface SinceOptions {
  readonly dataFolder: string;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** Samples recorded since a backup was made, which would be kept with the current database; null: not known, as the service does not answer. */
export async function samplesSince(rest: RestClient, made: string, { dataFolder, nowMs, signal }: SinceOptions): Promise<number | null> {
  const to = new Date(nowMs + 60_000).toISOString();
  if (Date.parse(made) >= nowMs) return null;
  try {
    const { nodes } = await rest.json<{ nodes: { node_name: string }[] }>('/status', { signal });
    let samples = 0;
    for (const { node_name } of nodes) samples += await samplesOf(rest, node_name, made, to, signal);
    return samples;
  } catch {
    signal.throwIfAborted();
    // Without a readable file there is no sample to lose; with one the number is unknown.
    const hasDatabase = await stat(join(dataFolder, DATABASE_FILE)).catch(() => null);
    return hasDatabase === null ? 0 : null;
  }
}
