import { UsageError } from './cli/arguments.ts';
import { checkConfig } from './cli/check-config.ts';
import { type Command, EXIT } from './cli/command.ts';
import { runOther } from './cli/other-programs.ts';
import { leaveRoot } from './cli/root-helper.ts';
import { splitRosArguments } from './cli/ros-arguments.ts';
import { installation } from './core/files/installation.ts';
import { parseArguments } from './core/platform/arguments.ts';
import { exitWhenOutputFails, printProblem } from './core/platform/output.ts';
import { permissionProblem } from './core/platform/permission.ts';

/** Commands are loaded when they are called, so that `version` does not load the service. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import('./cli/run.ts')).run,
  'check-config': async () => checkConfig,
  reload: async () => (await import('./cli/reload.ts')).reload,
  status: async () => (await import('./cli/status.ts')).status,
  nodes: async () => (await import('./cli/nodes.ts')).nodes,
  sensors: async () => (await import('./cli/sensors.ts')).sensors,
  'ros-setup': async () => (await import('./cli/ros-setup.ts')).rosSetup,
  ops: async () => ops,
  harness: async () => harness,
  version: async () => version,
  help: async () => help,
};

const ops: Command = {
  summary: 'Maintenance jobs: checks, collection, backups; `edge-health ops` lists them',
  usage: 'ops NAME [OPTIONS]',
  help: '`edge-health ops --help` lists the jobs; each has --help.',
  options: {},
  positionals: 0,
  run: async () => runOther('ops', []),
};

const harness: Command = {
  summary: 'Reliability harness: observes the service for a week and writes a report',
  usage: 'harness COMMAND [OPTIONS]',
  help: '`edge-health harness --help` lists its commands; each has --help.',
  options: {},
  positionals: 0,
  run: async () => runOther('harness', []),
};

const version: Command = {
  summary: 'Print the version',
  usage: 'version',
  help: 'Exit codes: 0 done, 64 wrong usage.',
  options: {},
  positionals: 0,
  run: async () => {
    process.stdout.write(`edge-health ${installation().version} (Node ${process.versions.node})\n`);
    return EXIT.ok;
  },
};

const help: Command = {
  summary: 'Print this help, or the help of a command',
  usage: 'help [COMMAND]',
  help: 'Exit codes: 0 done, 64 unknown command.',
  options: {},
  positionals: 1,
  run: async ({ positionals: [name] }) => {
    process.stdout.write(name === undefined ? await overview() : helpOf(await commandNamed(name)));
    return EXIT.ok;
  },
};

async function overview(): Promise<string> {
  const lines: string[] = [];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(14)}${(await load()).summary}`);
  return `edge-health monitors the health of an edge computer.

Usage: edge-health COMMAND [OPTIONS]

${lines.join('\n')}

Each command has --help.
`;
}

function helpOf(command: Command): string {
  return `${command.summary}.\n\nUsage: edge-health ${command.usage}\n\n${command.help}\n`;
}

async function commandNamed(name: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) throw new UsageError(`there is no command "${name}"; commands: ${Object.keys(COMMANDS).join(', ')}`);
  return load();
}

async function main(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv;
  try {
    if (first === undefined) throw new UsageError('a command is missing; see: edge-health help');
    const name = first === '--help' || first === '-h' ? 'help' : first === '--version' ? 'version' : first;
    const code = await leaveRoot(name, rest, process.env);
    if (code !== null) return code;
    if (name === 'ops' || name === 'harness') return runOther(name, rest);
    const command = await commandNamed(name);
    const { own, ros } = splitRosArguments(rest);
    if (own.includes('--help') || own.includes('-h')) {
      process.stdout.write(helpOf(command));
      return EXIT.ok;
    }
    if (ros && !command.takesRosArguments) throw new UsageError(`${name} does not accept --ros-args; see: edge-health ${name} --help`);
    const refused = (reason: string): Error => new UsageError(`${reason}; see: edge-health ${name} --help`);
    return await command.run({ ...parseArguments(own, command.options, command.positionals, refused), ros });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    printProblem(`edge-health: ${error.message}`);
    return EXIT.usage;
  }
}

exitWhenOutputFails();
main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    const denied = permissionProblem(error, process.argv[2] ?? '');
    printProblem(`edge-health: ${denied ?? error.stack ?? error.message}`);
    process.exitCode = EXIT.failure;
  },
);
