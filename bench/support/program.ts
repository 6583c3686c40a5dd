import { parseArgs } from 'node:util';
import { Cleanup } from '../../testkit/cleanup.ts';
import type { Outcome } from './outcome.ts';

export interface Context {
  /** Length of the long measurement. */
  readonly minutes: number;
  readonly cleanup: Cleanup;
  readonly progress: (text: string) => void;
}

/** Main function of a benchmark program: progress on standard error, the outcome as JSON on standard output. */
export async function benchmark(name: string, measure: (context: Context) => Promise<Outcome>): Promise<void> {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
  const cleanup = new Cleanup();
  let isEnding = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // A second signal has no effect, because the cleanup is already in progress.
      if (!isEnding) void cleanup.end().finally(() => process.exit(1));
      isEnding = true;
    });
  }
  const progress = (text: string): void => void process.stderr.write(`  ${name}: ${text}\n`);
  try {
    const outcome = await measure({ minutes: Number(values.minutes), cleanup, progress });
    process.stdout.write(JSON.stringify(outcome));
  } finally {
    await cleanup.end();
  }
}
