/**
 * Waits for a condition, never for a fixed time. The timeout limits only a broken test. It is generous because the machine may be slow and
 * busy; no correct test depends on it.
 */
const TIMEOUT_SECONDS = 120;
const POLL_MS = 20;

export interface WaitOptions {
  readonly seconds?: number;
  /** Details for the error message; called after the timeout. */
  readonly describe?: () => unknown;
}

/**
 * Calls `probe` until its result is neither false, null nor undefined, and resolves with that result. A rejection of `probe` ends the
 * wait. Rejects with `what` and the description after `seconds`.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { seconds = TIMEOUT_SECONDS, describe }: WaitOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const result = await probe();
    if (result !== false && result !== null && result !== undefined) return result as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) {
      const details = describe?.();
      throw new Error(`timeout after ${seconds} s, waiting for: ${what}${details === undefined ? '' : `\n${text(details)}`}`);
    }
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

function text(details: unknown): string {
  return typeof details === 'string' ? details : JSON.stringify(details, null, 2);
}
