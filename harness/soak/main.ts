/** A week's samples in an hour, observed by the harness; see USAGE. */
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { INSIDE, OWN_NETWORK, onLoopback, runInOwnNetwork } from './network.ts';
import { readOptions, type SoakOptions, USAGE } from './options.ts';
import { writeSoakReport } from './report.ts';
import { CannotRun } from './service.ts';
import { soak } from './soak.ts';

const EXIT = { usage: 64, unavailable: 69 } as const;

async function run(options: SoakOptions, isInside: boolean): Promise<number> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  if (isInside) stopWithParent(interrupted);
  const findings = await soak(options, isInside ? OWN_NETWORK : onLoopback(), interrupted.signal);
  const { checks, statement, verdict } = writeSoakReport(options.folder, findings);
  for (const check of checks) process.stdout.write(`${check.verdict.padEnd(10)} ${check.title}: ${check.summary}\n`);
  process.stdout.write(`${verdict}: ${statement}\n`);
  process.stderr.write(`soak: report written to ${options.folder}/soak.md\n`);
  return VERDICT_EXIT[verdict];
}

/** After a SIGKILL of the process that created the network, this process would otherwise keep running in it. */
function stopWithParent(interrupted: AbortController): void {
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
  const code = isInside ? null : await runInOwnNetwork(argv);
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
