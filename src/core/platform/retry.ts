import { retryPauseMs } from '../time/time.ts';

export interface RetryOptions {
  /** Asked before each further attempt; by default always. */
  readonly isWanted?: () => boolean;
  /** Called after the first attempt if it fails. */
  readonly onFailure: (error: Error) => void;
  /** Called once a later attempt succeeds. */
  readonly onRecovery: () => void;
}

/**
 * Attempts an action until it succeeds, with growing pauses, which do not keep the process running. Resolves after the first attempt and
 * never rejects. For files and sockets that the service can do without for a time, as on a full /run or without free descriptors.
 */
export async function retryUntilDone(action: () => Promise<void>, options: RetryOptions, failures = 0): Promise<void> {
  const { isWanted = () => true, onFailure, onRecovery } = options;
  try {
    await action();
    if (failures > 0) onRecovery();
  } catch (error) {
    if (failures === 0) onFailure(error as Error);
    const next = failures + 1;
    setTimeout(() => {
      if (isWanted()) void retryUntilDone(action, options, next);
    }, retryPauseMs(next)).unref();
  }
}
