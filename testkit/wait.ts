/**
 * Waiting for something that happens, never for a length of time. The limit only decides how long a broken test hangs before it says
 * so: it is generous, since the machine may be slow and busy, and no test passes or fails by it.
 */
const LIMIT_SECONDS = 120;
const POLL_MS = 20;

export interface WaitOptions {
  readonly seconds?: number;
  /** What is known about the failure; called when the limit is reached. */
  readonly describe?: () => unknown;
}

/**
 * Asks until the answer is neither false, null nor undefined, and resolves with it. An asking that rejects ends the waiting.
 * Rejects with `what` and the description after `seconds`.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  { seconds = LIMIT_SECONDS, describe }: WaitOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== null && answer !== undefined) return answer as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) {
      const found = describe?.();
      throw new Error(`after ${seconds} s still not: ${what}${found === undefined ? '' : `\n${text(found)}`}`);
    }
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

function text(found: unknown): string {
  return typeof found === 'string' ? found : JSON.stringify(found, null, 2);
}
