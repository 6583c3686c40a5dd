/** What took too long. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/** What a promise gives, or a rejection with TooLong after so many seconds, or with the signal's reason; what it waited for goes on. */
export async function within<T>(seconds: number, promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let end: () => void = () => undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooLong(`no answer within ${seconds} s`)), seconds * 1000);
    end = () => reject(signal.reason);
    signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

const unanswered = new Map<string, Promise<unknown>>();

/**
 * Asks a file system something, unless the same is being asked already: then the answer to that. A call that hangs in the kernel
 * holds a thread of the pool for good, and a scheduler that asked anew every five minutes would soon have none left. That is why
 * this outlasts a run.
 */
export function askOnce<T>(question: string, ask: () => Promise<T>): Promise<T> {
  const asked = unanswered.get(question) as Promise<T> | undefined;
  if (asked) return asked;
  const answer = ask().finally(() => unanswered.delete(question));
  unanswered.set(question, answer);
  answer.catch(() => undefined); // Whoever asked may have given up meanwhile.
  return answer;
}
