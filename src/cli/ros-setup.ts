import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { configPath, dataPath, loadConfig } from '../config/load.ts';
import { formatConfigError } from '../config/parse.ts';
import { nearestExisting } from '../core/files/data-folder.ts';
import { installation } from '../core/files/installation.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { rosPaths } from '../core/files/ros-paths.ts';
import { printJson, printLines, printProblem } from '../core/platform/output.ts';
import { ownerOf, withoutOwn } from '../core/platform/privileges.ts';
import { discoverySettings } from '../ros/environment.ts';
import { graphNames } from '../ros/names.ts';
import type { Prepared } from '../ros/rclnodejs/prepared.ts';
import { probe } from '../ros/rclnodejs/probe.ts';
import { abandon } from '../ros/rclnodejs/setup/folders.ts';
import { type PrepareResult, prepare } from '../ros/rclnodejs/setup/prepare.ts';
import { SetupFailed } from '../ros/rclnodejs/setup/run-command.ts';
import { findSourcedRos } from '../ros/rclnodejs/sourced-environment.ts';
import { UsageError } from './arguments.ts';
import { type Command, EXIT } from './command.ts';

const DISTRIBUTIONS = '/opt/ros';

export const rosSetup: Command = {
  summary: 'Prepare edge-health for the sourced ROS 2 distribution',
  usage: 'ros-setup [--config FILE] [--data DIR] [--force] [--json]',
  help: `Makes a private copy of rclnodejs for the sourced distribution, compiles edge_health_interfaces, generates the message code
and tests the result. A second run finds it prepared; for another distribution, another rclnodejs or changed interfaces it
prepares again. Without this command, edge-health uses its embedded transport (ros.transport: auto). With the package, the
result is in /var/lib/edge-health-ros, which belongs to root: run the command as root. In a checkout, it is in the data folder.

  --config FILE   configuration, as for run
  --data DIR      data folder of a checkout, overriding the configuration
  --force         prepare again even if everything is prepared
  --json          print the result as JSON on standard output

Exit codes: 0 prepared, 1 a step failed, 64 wrong usage, 69 ROS 2 is not sourced or a requirement is not installed,
78 configuration invalid.`,
  options: { config: { type: 'string' }, data: { type: 'string' }, force: { type: 'boolean' }, json: { type: 'boolean' } },
  positionals: 0,
  run: async ({ options }) => {
    const file = configPath((options['config'] as string | undefined) ?? null);
    const loaded = loadConfig(file);
    if (!loaded.ok) {
      for (const error of loaded.errors) printProblem(formatConfigError(error));
      return EXIT.config;
    }
    const { config } = loaded;
    const data = options['data'] as string | undefined;
    const installed = installation();
    if (data !== undefined && installed.isPackage)
      throw new UsageError('--data can only be used in a checkout; the package has one folder for all services, which belongs to root');
    // With --data, only the named folder is used.
    const paths =
      data === undefined ? rosPaths(dataPath(config, file, process.env, installed)) : { ...rosPaths(resolve(data)), otherRoots: [] };
    const asJson = options['json'] === true;
    const fail = (code: number, problem: string): number => {
      if (asJson) printJson({ state: 'failed', problem });
      printProblem(problem);
      return code;
    };
    const ros = findSourcedRos(process.env);
    if (ros.state !== 'sourced') return fail(EXIT.unavailable, `${ros.reason}.\n${howToSource()}`);
    const untrusted = installed.isPackage && process.getuid?.() === 0 ? untrustedEntry(process.env) : null;
    if (untrusted !== null) return fail(EXIT.unavailable, untrusted);
    const located = discoverySettings(config.ros, process.env);
    if (!located.ok) return fail(EXIT.config, located.problem);
    const names = graphNames({ node_name: config.node_name, namespace: config.ros.namespace }, []);
    // The compiled code is tested as the user of the service and not as root.
    const user = installed.isPackage ? ownerOf(installed.dataFolder) : null;
    const tried = user === null ? process.env : withoutOwn(process.env);
    const tryOut = (prepared: Prepared): Promise<string | null> =>
      probe(prepared, { program: PROGRAMS.rosProbe, environment: tried, discovery: located.discovery, names, enclave: null, user });
    // The service, which may be another user, must be able to read the files.
    process.umask(0o022);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => {
        abandon(paths.preparedRoot);
        process.exit(EXIT.failure);
      });
    }
    const { distro } = ros;
    try {
      const result = await prepare({
        ros,
        paths,
        environment: process.env,
        user,
        force: options['force'] === true,
        probe: tryOut,
        onProgress: printProblem,
      });
      if (result.state === 'missing') return fail(EXIT.unavailable, missingText(distro, result.missing));
      if (asJson) printJson(result);
      else printLines(summary(distro, result));
      return EXIT.ok;
    } catch (error) {
      if (error instanceof SetupFailed) return fail(EXIT.failure, error.message);
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      const hint = code === 'EACCES' ? ' Run it as root.' : '';
      return fail(EXIT.failure, `${message}.${hint}`);
    }
  },
};

/** Variables of a setup file of ROS 2 that list folders, from which programs load or execute files. */
const LISTS = ['AMENT_PREFIX_PATH', 'CMAKE_PREFIX_PATH', 'LD_LIBRARY_PATH', 'PYTHONPATH', 'PKG_CONFIG_PATH'];
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** A folder in the sourced environment that another user could change while root executes files in it; null: there is none. */
function untrustedEntry(environment: NodeJS.ProcessEnv): string | null {
  for (const name of LISTS) {
    for (const entry of (environment[name] ?? '').split(':').filter((entry) => entry !== '')) {
      const existing = nearestExisting(resolve(entry));
      for (const start of [existing, realpathSync(existing)]) {
        for (let folder = start; ; folder = dirname(folder)) {
          const { mode, uid } = statSync(folder);
          if (uid !== 0 || ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0))
            return `${name} has ${entry}, but other users than root can change ${folder}: as root, source only setup files that belong to root`;
          if (folder === '/') break;
        }
      }
    }
  }
  return null;
}

function summary(distro: string, result: Extract<PrepareResult, { state: 'already' | 'prepared' }>): string[] {
  const { prepared, removed, state } = result;
  return [
    ...removed.map((key) => `removed ${key}, no longer used`),
    `ROS 2 ${distro} ${state === 'already' ? 'is already prepared' : 'is prepared'}: ${prepared.folder}`,
    ...(state === 'already' ? [] : ['edge-health uses it from its next start, if ROS 2 is sourced.']),
  ];
}

function missingText(distro: string, missing: Extract<PrepareResult, { state: 'missing' }>['missing']): string {
  const width = Math.max(...missing.map(({ what }) => what.length));
  const lines = missing.map(({ what, remedy }) => `  ${what.padEnd(width)}  ${remedy}`);
  return `To prepare for ROS 2 ${distro} these are missing:\n${lines.join('\n')}`;
}

function howToSource(): string {
  const installed = existsSync(DISTRIBUTIONS)
    ? readdirSync(DISTRIBUTIONS).filter((name) => existsSync(`${DISTRIBUTIONS}/${name}/setup.bash`))
    : [];
  const sudo =
    process.env['SUDO_USER'] === undefined
      ? ''
      : '\nsudo does not pass a sourced ROS 2 on: sudo bash -c "source <setup file> && edge-health ros-setup"';
  if (installed.length === 0) {
    return `There is none in ${DISTRIBUTIONS}: install one (https://docs.ros.org), or source the setup.bash of a workspace.${sudo}`;
  }
  return `Installed: ${installed.join(', ')}. Run: source ${DISTRIBUTIONS}/${installed[0]}/setup.bash${sudo}`;
}
