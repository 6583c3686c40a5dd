import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { messages } from '../messages/messages.ts';
import { reasonOf } from '../model/api.ts';
import type { Connection } from '../model/connection.ts';

export interface Requested<T> {
  /** The last response; null: none so far. */
  readonly value: T | null;
  /** Why the last request failed; null: it did not. */
  readonly problem: string | null;
  readonly tryAgain: () => void;
}

/** Requests a value while the service is connected, and again whenever one of `inputs` has changed or `tryAgain` is called. */
export function useRequest<T>(
  request: (signal: AbortSignal) => Promise<T>,
  { phase }: Connection,
  inputs: readonly unknown[],
): Requested<T> {
  const isConnected = phase === 'live' || phase === 'stale';
  const [{ problem, value }, set] = useState<Omit<Requested<T>, 'tryAgain'>>({ value: null, problem: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!isConnected) return undefined;
    const ending = new AbortController();
    request(ending.signal).then(
      (answer) => {
        if (!ending.signal.aborted) set({ value: answer, problem: null });
      },
      (error: unknown) => {
        if (!ending.signal.aborted) set((last) => ({ ...last, problem: reasonOf(error) ?? messages.connection.noResponse }));
      },
    );
    return () => ending.abort();
  }, [isConnected, attempt, ...inputs]);
  return { value, problem, tryAgain: () => setAttempt((last) => last + 1) };
}

/** Why a request failed, and a button that repeats it; nothing if it did not fail. */
export function Failure({ of: { problem, tryAgain } }: { of: Requested<unknown> }): VNode | null {
  if (problem === null) return null;
  return (
    <p class="notice" role="alert">
      {messages.shell.failed(problem)}{' '}
      <button type="button" onClick={tryAgain}>
        {messages.shell.tryAgain}
      </button>
    </p>
  );
}
