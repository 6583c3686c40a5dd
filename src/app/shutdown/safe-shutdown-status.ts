import type { ShutdownRecord } from '../../core/shutdown/shutdown-record.ts';
import type { StatusDocument } from '../../http/api/schema.ts';
import type { ShutdownSettings } from './safe-shutdown-settings.ts';

type Shutdown = StatusDocument['shutdown'];

/** Number of requests listed in /status. */
export const REQUESTS_SHOWN = 10;

export interface ShutdownKnown {
  readonly settings: Pick<ShutdownSettings, 'enabled' | 'action'>;
  readonly problem: string | null;
  /** The last accepted request, of this or an earlier run. */
  readonly last: ShutdownRecord | null;
  /** Null: none is in progress. */
  readonly secondsLeft: number | null;
  readonly counts: { readonly accepted: number; readonly refused: number };
  readonly requests: readonly ShutdownRecord[];
}

/** The safe shutdown part of /status. */
export function shutdownStatus({ settings, problem, last, secondsLeft, counts, requests }: ShutdownKnown): Shutdown {
  const outcome = last?.outcome ?? 'none';
  return {
    enabled: settings.enabled,
    action: settings.action,
    problem,
    state: outcome === 'refused' ? 'none' : outcome,
    request_id: last?.request_id ?? null,
    reason: last?.reason ?? null,
    requested_by: last?.requested_by ?? null,
    step: last?.step ?? null,
    seconds_left: secondsLeft === null ? null : Math.round(secondsLeft * 1000) / 1000,
    started: last?.timestamp ?? null,
    ended: last?.ended ?? null,
    message: last?.message ?? null,
    ...counts,
    requests: requests.map(({ boot_id: _, ...request }) => request),
  };
}
