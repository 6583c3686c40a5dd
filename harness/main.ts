import { exitWhenOutputFails } from '../src/core/platform/output.ts';
import { permissionProblem } from '../src/core/platform/permission.ts';
import { RecordError } from './record/record-error.ts';
import { argumentsOf, EXIT, type HarnessCommand, Refusal } from './run/command.ts';

/** Commands are loaded on demand, because the observer must not load the reports. */
const COMMANDS: Readonly<Record<string, () => Promise<HarnessCommand>>> = {
  run: async () => (await import('./run/run.ts')).run,
  start: async () => (await import('./run/start-stop.ts')).start,
  status: async () => (await import('./run/record-commands.ts')).status,
  stop: async () => (await import('./run/start-stop.ts')).stop,
  report: async () => (await import('./run/record-commands.ts')).report,
  verify: async () => (await import('./run/record-commands.ts')).verify,
};
/** The longest time that open connections may keep the process alive after its command. */
const LINGER_MS = 1000;

async function overview(): Promise<string> {
  const lines: string[] = [];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(10)}${(await load()).summary}`);
  return `The reliability harness: observes the service from outside for a week, and reports whether it met six criteria.

Usage: edge-health harness COMMAND [OPTIONS]

${lines.join('\n')}

Each has --help. Exit codes of a run: 0 PASS, 1 FAIL, 2 INCOMPLETE.
`;
}

const helpOf = ({ help, summary, usage }: HarnessCommand): string => `${summary}.\n\nUsage: edge-health harness ${usage}\n\n${help}\n`;

async function main([name, ...rest]: readonly string[]): Promise<number> {
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
      process.stdout.write(await overview());
      return name === undefined ? EXIT.usage : EXIT.ok;
    }
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!load) throw new Refusal(EXIT.usage, `there is no command "${name}"; commands: ${Object.keys(COMMANDS).join(', ')}`);
    const command = await load();
    const given = argumentsOf(command, rest);
    if (given.options['help']) {
      process.stdout.write(helpOf(command));
      return EXIT.ok;
    }
    return await command.run(given);
  } catch (error) {
    const { message, stack } = error as Error;
    const denied = permissionProblem(error, `harness ${name}`);
    const code = denied === null ? exitCodeOf(error as Error) : EXIT.unavailable;
    process.stderr.write(`edge-health harness: ${denied ?? (code === EXIT.internal ? (stack ?? message) : message)}\n`);
    return code;
  }
}

function exitCodeOf(error: Error): number {
  if (error instanceof RecordError) return error.code === 'in-use' ? EXIT.inUse : EXIT.unavailable;
  return error instanceof Refusal ? error.exitCode : EXIT.internal;
}

exitWhenOutputFails();
// Node would exit with 1, which is the code of a verdict.
process.on('uncaughtException', (error) => {
  process.stderr.write(`edge-health harness: ${error.stack ?? error.message}\n`);
  process.exit(EXIT.internal);
});

main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
  setTimeout(() => process.exit(), LINGER_MS).unref();
});
