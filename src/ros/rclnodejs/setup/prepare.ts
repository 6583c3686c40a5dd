import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import {
  findPrepared,
  MANIFEST,
  notInstalled,
  type Prepared,
  type PreparedManifest,
  preparedKey,
  type RosPaths,
  trustProblem,
} from '../prepared.ts';
import type { User } from '../probe.ts';
import type { SourcedRos } from '../sourced-environment.ts';
import { provideAddon } from './addon.ts';
import { beginFolder, publishFolder, removeOutdated, removeUnfinished } from './folders.ts';
import { generateMessageCode } from './message-code.ts';
import { copyRclnodejs } from './private-copy.ts';
import { runCommand, SetupFailed, type Workspace } from './run-command.ts';
import { type Missing, missingTools } from './toolchain.ts';

export interface PrepareOptions {
  readonly ros: SourcedRos;
  readonly paths: RosPaths;
  readonly environment: NodeJS.ProcessEnv;
  /** Prepare again even if a working copy exists. */
  readonly force: boolean;
  /** The user to test the compiled addon as; this process's user by default. */
  readonly user?: User | null;
  /** Tests a prepared copy; null: it works. */
  readonly probe: (prepared: Prepared) => Promise<string | null>;
  /** Receives progress lines. */
  readonly onProgress: (line: string) => void;
}

export type PrepareResult =
  | { readonly state: 'already' | 'prepared'; readonly prepared: Prepared; readonly removed: readonly string[] }
  | { readonly state: 'missing'; readonly missing: readonly Missing[] };

/**
 * Prepares a private copy of rclnodejs for the sourced ROS 2 with the compiled interfaces and the message code, tests it, and publishes
 * it atomically; a killed run never leaves a folder that appears complete. Rejects with SetupFailed.
 */
export async function prepare(options: PrepareOptions): Promise<PrepareResult> {
  const { ros, paths, force, probe, onProgress } = options;
  const untrusted = trustProblem([paths.preparedRoot], paths);
  if (untrusted !== null) throw new SetupFailed(untrusted);
  removeUnfinished(paths.preparedRoot);
  const there = findPrepared(ros.distro, paths);
  if (!('reason' in there) && !force) {
    const problem = await probe(there);
    if (problem === null) return { state: 'already', prepared: there, removed: removeOutdated(paths.preparedRoot, there.key) };
    onProgress(`the prepared copy in ${there.folder} does not work (${problem}): preparing it again`);
  }
  const key = preparedKey(ros.distro, paths);
  if (key === null) throw new SetupFailed(notInstalled(paths));
  const missing = missingTools(ros, options.environment);
  if (missing.length > 0) return { state: 'missing', missing };
  const prepared = await prepareFolder(options, key);
  return { state: 'prepared', prepared, removed: removeOutdated(paths.preparedRoot, key) };
}

async function prepareFolder({ ros, paths, environment, user = null, probe, onProgress }: PrepareOptions, key: string): Promise<Prepared> {
  const { preparedRoot } = paths;
  const folder = beginFolder(preparedRoot);
  const logFile = join(preparedRoot, 'setup.log');
  const workspace: Workspace = { ros, paths, folder, environment, user, logFile, onProgress };
  // The service may run as another user.
  chmodSync(folder, 0o755);
  writeFileSync(logFile, `preparing ${key}\n`);
  try {
    onProgress(`1/5 copying rclnodejs to ${join(preparedRoot, key)}`);
    copyRclnodejs(paths.rclnodejs, folder);
    onProgress('2/5 finding an addon of rclnodejs that loads');
    const addon = await provideAddon(workspace);
    onProgress('3/5 compiling edge_health_interfaces');
    await buildInterfaces(workspace);
    onProgress('4/5 generating message code');
    await generateMessageCode(workspace);
    onProgress('5/5 trying it: nodes, a message, the service');
    const trial: Prepared = { key, distro: ros.distro, folder };
    const problem = await probe(trial);
    if (problem !== null) throw new SetupFailed(`the prepared copy does not work: ${problem}`);
    const manifest: PreparedManifest = { key, architecture: process.arch, addon, made: new Date().toISOString() };
    writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    publishFolder(folder, preparedRoot, key);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return { key, distro: ros.distro, folder: join(preparedRoot, key) };
}

/** Compiles the package edge_health_interfaces into `<folder>/interfaces` with plain cmake. */
async function buildInterfaces(workspace: Workspace): Promise<void> {
  const { folder, paths } = workspace;
  const build = join(folder, 'build-interfaces');
  const cmake = (what: string, ...args: string[]): Promise<void> => runCommand(workspace, what, 'cmake', args);
  const settings = [`-DCMAKE_INSTALL_PREFIX=${join(folder, 'interfaces')}`, '-DCMAKE_BUILD_TYPE=Release', '-DBUILD_TESTING=OFF'];
  await cmake('configuring edge_health_interfaces', '-S', paths.interfaces, '-B', build, ...settings);
  await cmake('compiling edge_health_interfaces', '--build', build, '--parallel', String(availableParallelism()));
  await cmake('installing edge_health_interfaces', '--install', build);
  rmSync(build, { recursive: true });
}
