import { findService, isRunning, notRunningHint, type ReloadOutcome, readReloadOutcome } from '../client/running-service.ts';
import { configPath, loadConfig } from '../config/load.ts';
import { isJournal } from '../core/platform/log.ts';
import { printLines, printProblem } from '../core/platform/output.ts';
import { type Command, EXIT } from './command.ts';

const TIMEOUT_SECONDS = 30;
const POLL_MS = 20;

export const reload: Command = {
  summary: 'Reload the configuration of the running service and show the result',
  usage: 'reload [--config FILE]',
  help: `  --config FILE   configuration that the service was started with; default: as for "run"

Applies the keys marked "reload" in edge_health_config(5). Prints every changed key that needs a restart, with the value that is
still in effect. A file with errors changes nothing. \`systemctl reload edge-health\` runs this command, and reloads
the scheduler too.
Exit codes: 0 all keys applied, 1 keys need a restart, 64 wrong usage, 69 no service or no response, 78 file refused.`,
  options: { config: { type: 'string' } },
  positionals: 0,
  run: async ({ options }) => {
    const file = configPath((options['config'] as string | undefined) ?? null);
    const service = findService(file, process.env);
    const fail = (code: number, ...lines: readonly string[]): number => {
      for (const line of lines) printProblem(`edge-health: ${line}`);
      return code;
    };
    if (service === null) return fail(EXIT.unavailable, `no service of this machine runs with ${file}${notRunningHint()}`);
    const { folder, pid } = service;
    // Read in this process first, so that the service is never the first to read a file. It reports the errors itself, also in /status.
    loadConfig(file);
    const before = readReloadOutcome(folder, pid)?.reloads ?? 0;
    try {
      process.kill(pid, 'SIGHUP');
    } catch (error) {
      return fail(
        EXIT.unavailable,
        `no permission to signal process ${pid} (${(error as NodeJS.ErrnoException).code}); run: sudo edge-health reload`,
      );
    }
    let outcome: ReloadOutcome | null = null;
    for (const end = performance.now() + TIMEOUT_SECONDS * 1000; ; ) {
      const last = readReloadOutcome(folder, pid);
      if (last !== null && last.reloads > before) outcome = last;
      if (outcome !== null || performance.now() > end || !isRunning(service)) break;
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS);
      });
    }
    if (outcome === null) {
      const what = isRunning(service) ? `reported no result within ${TIMEOUT_SECONDS} s` : 'ended during the reload';
      return fail(EXIT.unavailable, `process ${pid} ${what}; see its log: journalctl -u edge-health`);
    }
    const { problem, restart_needed } = outcome;
    // As ExecReload= of the unit, this command writes to the same journal as the service, which has already logged these lines.
    if (isJournal(process.stderr.fd)) return problem !== null ? EXIT.config : restart_needed.length > 0 ? EXIT.failure : EXIT.ok;
    if (problem !== null) return fail(EXIT.config, 'not reloaded: the running configuration stays in force', ...problem.split('\n'));
    if (restart_needed.length > 0) return fail(EXIT.failure, ...restart_needed);
    printLines([`${file}: reloaded`]);
    return EXIT.ok;
  },
};
