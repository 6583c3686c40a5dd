/** Polls until a condition holds or the timeout expires; returns whether it holds. */
export async function pollUntil(
  holds: () => boolean,
  timeoutSeconds: number,
  pollMs: number,
  beforeEach?: () => Promise<void>,
): Promise<boolean> {
  const timeoutAt = performance.now() + timeoutSeconds * 1000;
  while (!holds()) {
    if (performance.now() >= timeoutAt) return false;
    await new Promise((resolve) => {
      setTimeout(resolve, pollMs);
    });
    await beforeEach?.();
  }
  return true;
}
