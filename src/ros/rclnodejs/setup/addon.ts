import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, freemem } from 'node:os';
import { dirname, join } from 'node:path';
import { addonFile } from '../prepared.ts';
import type { SourcedRos } from '../sourced-environment.ts';
import { copyParts, resolvePackage, SOURCE_PARTS } from './private-copy.ts';
import { runCommand, SetupFailed, type Workspace } from './run-command.ts';
import { nodeHeaders } from './toolchain.ts';

/** Memory of one compiler process for a file of rclnodejs. */
const BYTES_PER_JOB = 700e6;
/** RTLD_NOW (dlopen(3)) resolves all symbols at once, so that a missing one is detected. */
const TRY = "process.dlopen({ exports: {} }, process.argv[1], require('node:os').constants.dlopen.RTLD_NOW)";

/** Puts a loadable addon into the private copy: a prebuilt one of rclnodejs, otherwise one compiled on this machine. */
export async function provideAddon(workspace: Workspace): Promise<'prebuilt' | 'compiled'> {
  const target = addonFile(workspace.folder);
  mkdirSync(dirname(target), { recursive: true });
  for (const prebuilt of prebuiltAddons(workspace)) {
    if (loadProblem(prebuilt, workspace) !== null) continue;
    copyFileSync(prebuilt, target);
    return 'prebuilt';
  }
  workspace.onProgress('    no prebuilt addon of rclnodejs fits this system: compiling one (half a minute to several minutes)');
  await compile(workspace, target);
  const problem = loadProblem(target, workspace);
  if (problem !== null) throw new SetupFailed(`the compiled addon of rclnodejs does not load: ${problem}`);
  return 'compiled';
}

/** `prebuilds/linux-x64/jazzy-noble-x64-node-rclnodejs.node`: each built for one Ubuntu release, but possibly loadable on others. */
function prebuiltAddons({ paths, ros }: Workspace): string[] {
  const folder = join(paths.rclnodejs, 'prebuilds', `${process.platform}-${process.arch}`);
  if (!existsSync(folder)) return [];
  const name = new RegExp(`^${ros.distro}-[a-z]+-${process.arch}-node-rclnodejs\\.node$`);
  return readdirSync(folder)
    .filter((file) => name.test(file))
    .map((file) => join(folder, file));
}

/** Tries to load an addon in a separate process. Null: it loads. */
function loadProblem(file: string, { environment, user }: Workspace): string | null {
  const { status, signal, stderr } = spawnSync(process.execPath, ['-e', TRY, file], {
    ...user,
    env: environment,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (status === 0) return null;
  return /Error: (.*)/.exec(stderr)?.[1] ?? signal ?? `exit code ${status}`;
}

async function compile(workspace: Workspace, target: string): Promise<void> {
  const { ros, folder, environment } = workspace;
  const { rclnodejs } = workspace.paths;
  const gyp = resolvePackage('node-gyp', rclnodejs, dirname(rclnodejs));
  const headers = nodeHeaders(process.execPath);
  if (gyp === null)
    throw new SetupFailed('compiling the addon needs the npm package node-gyp, which is missing: install edge-health again');
  if (headers === null)
    throw new SetupFailed(
      `compiling the addon needs the headers of Node ${process.versions.node}, which are missing beside ${process.execPath}`,
    );
  const copy = join(folder, 'node_modules/rclnodejs');
  const tools = join(folder, 'build-ros');
  copyParts(rclnodejs, copy, SOURCE_PARTS);
  const utilities = join(copy, 'src/rcl_utilities.cpp');
  writeFileSync(utilities, withQosPeriods(readFileSync(utilities, 'utf8')));
  linkPrefixes(ros, tools);
  const args = [join(gyp, 'bin/node-gyp.js'), 'rebuild', '-j', String(jobs()), '--nodedir', headers];
  await runCommand(workspace, 'compiling rclnodejs', process.execPath, args, {
    folder: copy,
    // Its binding.gyp finds `node` and `ros2` through the PATH.
    environment: {
      ...environment,
      PATH: [join(tools, 'bin'), dirname(process.execPath), environment['PATH']].join(':'),
      // Otherwise Python writes bytecode files beside node-gyp, which remain when the package is removed.
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  const kept = join(folder, 'rclnodejs.node');
  copyFileSync(target, kept);
  rmSync(join(copy, 'build'), { recursive: true });
  for (const part of [...SOURCE_PARTS.map((name) => join(copy, name)), tools]) rmSync(part, { recursive: true });
  mkdirSync(dirname(target), { recursive: true });
  renameSync(kept, target);
}

/**
 * rclnodejs 2 passes neither deadline nor lease of a QoS object to rcl. Adds this to the end of the function in its rcl_utilities.cpp
 * that converts one, for the properties of `QosPeriods`.
 */
export function withQosPeriods(source: string): string {
  const end = '  return qos_profile;\n}\n\nNapi::Value ConvertRMWTimeToDuration(';
  const [before = '', after] = source.split(end);
  if (after === undefined) return source;
  const reads = [
    ['deadlineMilliseconds', 'deadline'],
    ['leaseMilliseconds', 'liveliness_lease_duration'],
  ].map(
    ([property, member]) => `  if (object.Get("${property}").IsNumber()) {
    const uint64_t milliseconds = object.Get("${property}").As<Napi::Number>().Int64Value();
    qos_profile->${member} = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  }
`,
  );
  return [before, ...reads, end, after].join('');
}

/**
 * rclnodejs compiles against <root>/include/<package> and <root>/lib, where <root>/bin/ros2 is the first `ros2` on the PATH. This
 * creates such a root with links to all prefixes, so that neither ros2cli nor a merged prefix is needed.
 */
function linkPrefixes(ros: SourcedRos, root: string): void {
  for (const part of ['bin', 'include', 'lib']) mkdirSync(join(root, part), { recursive: true });
  writeFileSync(join(root, 'bin/ros2'), '#!/bin/sh\nexit 1\n');
  chmodSync(join(root, 'bin/ros2'), 0o755);
  for (const prefix of ros.prefixes) {
    for (const part of ['include', 'lib']) {
      const folder = join(prefix, part);
      for (const name of existsSync(folder) ? readdirSync(folder) : []) {
        const link = join(root, part, name);
        if ((part === 'include' || name.endsWith('.so')) && !existsSync(link)) symlinkSync(join(folder, name), link);
      }
    }
  }
}

function jobs(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(freemem() / BYTES_PER_JOB)));
}
