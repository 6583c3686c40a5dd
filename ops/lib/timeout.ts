export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Settles as the promise does, or rejects with TimeoutError after this many seconds, or with the signal's reason when the signal is
 * aborted. The work behind the promise continues.
 */
export async function withTimeout<T>(seconds: number, promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let onAbort: () => void = () => undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`no response within ${seconds} s`)), seconds * 1000);
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

const pending = new Map<string, Promise<unknown>>();

/**
 * Starts a file system call, or returns the result of the pending call with the same key. A call that hangs in the kernel
 * occupies a thread of the pool permanently; a scheduler that repeated it every five minutes would soon have no threads left.
 * Pending calls therefore outlast a run.
 */
export function sharePending<T>(key: string, call: () => Promise<T>): Promise<T> {
  const before = pending.get(key) as Promise<T> | undefined;
  if (before) return before;
  const result = call().finally(() => pending.delete(key));
  pending.set(key, result);
  result.catch(() => undefined); // The caller may have timed out in the meantime.
  return result;
}

/** The result of a file system call, shared with the pending call of the same key; rejects as withTimeout does. */
export function shareWithTimeout<T>(seconds: number, key: string, call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return withTimeout(seconds, sharePending(key, call), signal);
}
