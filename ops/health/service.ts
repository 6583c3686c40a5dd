import { ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alert.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { JobContext } from '../lib/job.ts';

export type ServiceAnswer =
  | {
      readonly kind: 'answer';
      readonly status: StatusDocument;
      /** How long /status took. */
      readonly seconds: number;
      /** The newest open alerts; null: they could not be asked for. */
      readonly open: readonly Alert[] | null;
    }
  | { readonly kind: 'unreachable'; readonly why: string }
  /** It answered with an error; `httpStatus` says which. */
  | { readonly kind: 'refused'; readonly why: string; readonly httpStatus: number };

const TIMEOUT_SECONDS = 6;
const ALERTS_NAMED = 20;

/** What the service says of itself. Never rejects. */
export async function askService({ rest, signal }: JobContext): Promise<ServiceAnswer> {
  const options = { timeoutSeconds: TIMEOUT_SECONDS, signal };
  const began = performance.now();
  try {
    const status = await rest.json<StatusDocument>('/status', options);
    const seconds = (performance.now() - began) / 1000;
    if (!Array.isArray(status.nodes)) return { kind: 'unreachable', why: `${rest.base} is not edge-health` };
    const { CRITICAL, ERROR, WARNING } = status.open_alerts;
    if (CRITICAL + ERROR + WARNING === 0) return { kind: 'answer', status, seconds, open: [] };
    const listed = await rest.json<{ data: Alert[] }>(`/alerts?resolved=false&limit=${ALERTS_NAMED}`, options).catch(() => null);
    return { kind: 'answer', status, seconds, open: listed?.data ?? null };
  } catch (error) {
    if (error instanceof ServiceRefused) return { kind: 'refused', why: error.message, httpStatus: error.status };
    const { message } = error as Error;
    return { kind: 'unreachable', why: error instanceof ServiceUnreachable ? message : `${rest.base}: ${message}` };
  }
}
