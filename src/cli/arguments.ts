/** An invalid command line. The message states the correct usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
