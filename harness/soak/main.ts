/** A week's samples in an hour on the service of this checkout; see options.ts for its usage. */
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { readOptions, type SoakOptions, USAGE } from './options.ts';
import { INSIDE, OWN_NETWORK, onLoopback, runInside } from './place.ts';
import { Progress } from './progress.ts';
import { SOAK_FILES, writeSoak } from './report.ts';
import { CannotRun, soak } from './soak.ts';

const EXIT = { usage: 64, unavailable: 69 } as const;

async function run(options: SoakOptions, isInside: boolean): Promise<number> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  if (isInside) endWithParent(interrupted);
  const progress = new Progress(process.stderr, options.hertz);
  const findings = await soak(options, isInside ? OWN_NETWORK : onLoopback(), interrupted.signal, progress);
  progress.end();
  const { checks, statement, verdict } = writeSoak(options.folder, findings);
  for (const check of checks) process.stdout.write(`${check.verdict.padEnd(10)} ${check.title}: ${check.summary}\n`);
  process.stdout.write(`${verdict}: ${statement}\n`);
  process.stderr.write(`soak: written to ${options.folder}/${SOAK_FILES.markdown}\n`);
  return VERDICT_EXIT[verdict];
}

/** Whoever made the network for it is gone: nobody would take it away. */
function endWithParent(interrupted: AbortController): void {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && interrupted.abort(), 1000).unref();
}

async function main(argv: readonly string[]): Promise<number> {
  const isInside = argv[0] === INSIDE;
  let options: SoakOptions | null;
  try {
    options = readOptions(isInside ? argv.slice(1) : argv);
  } catch (error) {
    process.stderr.write(`soak: ${(error as Error).message}\n\n${USAGE}`);
    return EXIT.usage;
  }
  if (options === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  const code = isInside ? null : await runInside(argv);
  if (code !== null) return code;
  try {
    return await run(options, isInside);
  } catch (error) {
    if (!(error instanceof CannotRun)) throw error;
    process.stderr.write(`soak: ${error.message}\n`);
    return EXIT.unavailable;
  }
}

process.exitCode = await main(process.argv.slice(2));
