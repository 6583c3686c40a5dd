import { setTimeout as later } from 'node:timers/promises';
import type { RestClient } from '../../src/client/rest.ts';
import type { AggregateDocument, StatusDocument } from '../../src/http/api/schema.ts';
import type { DatabaseCounts } from './manifest.ts';

const POLL_MS = 250;
/** Of what is older the service keeps means of minutes instead of samples, from when it runs; they count the samples, but not at the very ends. */
const EXACT_MS = 8 * 86_400_000;
const NEARLY = 0.99;
/** Nor is that kept for ever. */
const COUNTED_MS = 80 * 86_400_000;

/** Samples that a running service has of a node in a range; the end is not part of it. */
export async function samplesOf(rest: RestClient, node: string, from: string, to: string, signal?: AbortSignal): Promise<number> {
  const query = new URLSearchParams({ node, from, to });
  const { samples_received } = await rest.json<AggregateDocument>(`/health/aggregate?${query}`, {
    timeoutSeconds: 60,
    ...(signal ? { signal } : {}),
  });
  return samples_received;
}

/** Waits until the service answers with a sample of its own, and its storage is well; throws with what is wrong after `seconds`. */
async function answers(rest: RestClient, seconds: number, signal: AbortSignal): Promise<StatusDocument> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    try {
      await rest.json('/health', { signal });
      const status = await rest.json<StatusDocument>('/status', { signal });
      if (status.storage.state === 'ok') return status;
      throw new Error(`its storage is ${status.storage.state}: ${status.storage.error}`);
    } catch (error) {
      signal.throwIfAborted();
      if (performance.now() > deadline) throw new Error(`the service is not well after ${seconds} s: ${(error as Error).message}`);
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
  const { storage } = await answers(rest, seconds, signal);
  if (storage.set_aside.length > 0)
    throw new Error(`the service did not accept the restored database, and set it aside: ${storage.set_aside.join(', ')}`);
  let found = 0;
  let expected = 0;
  let isExact = true;
  for (const { first, last, node, samples } of database.nodes) {
    // What a node with a wrong clock sent lies anywhere in time, and may be given up at once.
    if (first === null || last === null || Date.parse(last) < nowMs - COUNTED_MS || Date.parse(last) > nowMs) continue;
    expected += samples;
    isExact &&= Date.parse(first) > nowMs - EXACT_MS;
    found += await samplesOf(rest, node, first, new Date(Date.parse(last) + 1).toISOString(), signal);
  }
  if (found < expected * (isExact ? 1 : NEARLY)) throw new Error(`of ${expected} samples the service finds ${found}`);
  return { samples: found };
}
