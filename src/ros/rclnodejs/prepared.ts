import { existsSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { findSourcedRos, type SourcedRos } from './sourced-environment.ts';

/** Paths of the input and the results of `edge-health ros-setup`. */
export interface RosPaths {
  /** Contains one folder per key. */
  readonly preparedRoot: string;
  /** Further folders with prepared copies, shared by processes with separate data folders. */
  readonly otherRoots: readonly string[];
  /** User ids whose code may be loaded. */
  readonly owners: readonly number[];
  /** The package edge_health_interfaces: .msg and .srv files, CMakeLists.txt. */
  readonly interfaces: string;
  /** The rclnodejs installed with the product. It must not be imported, since it starts to compile itself when it cannot be loaded. */
  readonly rclnodejs: string;
}

/** A prepared copy for one ROS distribution, one version of rclnodejs and one version of the interfaces. */
export interface Prepared {
  readonly key: string;
  readonly distro: string;
  readonly folder: string;
}

/** `prepared.json` of a prepared folder. It is written last, so its presence shows that the folder is complete. */
export interface PreparedManifest {
  readonly key: string;
  readonly architecture: string;
  /** `prebuilt` or `compiled`. */
  readonly addon: string;
  readonly made: string;
}

/** The state of ROS 2 for rclnodejs, determined without loading it. */
export type RosFinding =
  | { readonly state: 'none'; readonly reason: string }
  | { readonly state: 'broken'; readonly reason: string }
  | { readonly state: 'unprepared'; readonly ros: SourcedRos; readonly reason: string }
  | { readonly state: 'prepared'; readonly ros: SourcedRos; readonly prepared: Prepared };

/** Reads environment variables and some small files; loads no library and starts no process. */
export function findRos(environment: NodeJS.ProcessEnv, paths: RosPaths): RosFinding {
  const ros = findSourcedRos(environment);
  if (ros.state !== 'sourced') return ros;
  const prepared = findPrepared(ros.distro, paths);
  return 'reason' in prepared ? { state: 'unprepared', ros, reason: prepared.reason } : { state: 'prepared', ros, prepared };
}

export const MANIFEST = 'prepared.json';

/** The compiled typesupport libraries of edge_health_interfaces, which rcl finds only through LD_LIBRARY_PATH. */
export function libraryFolder({ folder }: Pick<Prepared, 'folder'>): string {
  return join(folder, 'interfaces/lib');
}

export function addonFile(folder: string): string {
  return join(folder, 'node_modules/rclnodejs/build/Release/rclnodejs.node');
}

/** Version of the rclnodejs installed with the product; null: not installed. */
export function rclnodejsVersion(paths: RosPaths): string | null {
  try {
    const { version } = JSON.parse(readFileSync(join(paths.rclnodejs, 'package.json'), 'utf8')) as { version?: unknown };
    return typeof version === 'string' && /^[\w.+-]+$/.test(version) ? version : null;
  } catch {
    return null;
  }
}

/** A hash, eight hexadecimal digits, of all files that determine the generated code. Throws when a file cannot be read. */
export function interfaceHash(folder: string): string {
  const files = ['CMakeLists.txt'];
  for (const kind of ['msg', 'srv']) {
    for (const name of readdirSync(join(folder, kind)).sort()) if (name.endsWith(`.${kind}`)) files.push(`${kind}/${name}`);
  }
  // FNV-1a, because the hash is not for security and loading node:crypto takes 3 MB of memory.
  let hash = 0x811c9dc5;
  for (const file of files) {
    for (const octet of Buffer.concat([Buffer.from(`${file}\0`), readFileSync(join(folder, file)), Buffer.from([0])])) {
      hash = Math.imul(hash ^ octet, 0x01000193);
    }
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** The folder name for this distribution and the installed versions; null: rclnodejs is not installed. */
export function preparedKey(distro: string, paths: RosPaths): string | null {
  const version = rclnodejsVersion(paths);
  return version === null ? null : `${distro}-${version}-${interfaceHash(paths.interfaces)}`;
}

export function notInstalled({ rclnodejs }: RosPaths): string {
  return `the npm package rclnodejs is missing in ${rclnodejs}: install edge-health again (a checkout: rm -r node_modules; npm run build)`;
}

/** The prepared copy for a distribution, or why there is none to use. */
export function findPrepared(distro: string, paths: RosPaths): Prepared | { readonly reason: string } {
  let key: string | null;
  try {
    key = preparedKey(distro, paths);
  } catch (error) {
    return { reason: `the interface package ${paths.interfaces} cannot be read: ${(error as Error).message}` };
  }
  if (key === null) return { reason: notInstalled(paths) };
  const roots = [paths.preparedRoot, ...paths.otherRoots];
  const problems: string[] = [];
  for (const root of roots) {
    const folder = join(root, key);
    const untrusted = trustProblem([root, folder], paths);
    if (untrusted !== null) problems.push(`the prepared copy in ${folder} is not used: ${untrusted}`);
    else if (existsSync(join(folder, MANIFEST))) {
      const problem = copyProblem(folder, key);
      if (problem === null) return { key, distro, folder };
      problems.push(`the prepared copy in ${folder} ${problem}: run edge-health ros-setup --force`);
    }
  }
  if (problems[0] !== undefined) return { reason: problems[0] };
  if (roots.some((root) => preparedKeys(root).some((other) => other.startsWith(`${distro}-`)))) {
    return { reason: 'prepared for another version of rclnodejs or of the interfaces: run edge-health ros-setup again' };
  }
  return { reason: 'not prepared: run edge-health ros-setup' };
}

/** Why other users may have put code into one of these folders; null: they cannot have, or a folder does not exist. */
export function trustProblem(folders: readonly string[], { owners }: Pick<RosPaths, 'owners'>): string | null {
  for (const folder of folders) {
    let stats: Stats | undefined;
    try {
      stats = statSync(folder, { throwIfNoEntry: false });
    } catch (error) {
      return `its owner cannot be determined: ${(error as Error).message}`;
    }
    if (!stats) return null;
    if (!owners.includes(stats.uid)) return `${folder} belongs to user ${stats.uid}; remove it`;
    if ((stats.mode & 0o022) !== 0) return `other users can write to ${folder}; remove it`;
  }
  return null;
}

/** Why a copy with a manifest cannot be used; null: it can. */
function copyProblem(folder: string, key: string): string | null {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as PreparedManifest;
    const isWhole = manifest.key === key && existsSync(addonFile(folder)) && existsSync(libraryFolder({ folder }));
    if (isWhole) return manifest.architecture === process.arch ? null : `is for ${manifest.architecture}`;
  } catch {
    // A manifest that was cut short.
  }
  return 'is incomplete';
}

/** Names of the complete prepared folders. */
export function preparedKeys(preparedRoot: string): string[] {
  try {
    return readdirSync(preparedRoot).filter((name) => existsSync(join(preparedRoot, name, MANIFEST)));
  } catch {
    return [];
  }
}

/** Process id of a process that was restarted, to avoid a second restart even if LD_LIBRARY_PATH was changed meanwhile. */
const RESTARTED = 'EDGE_HEALTH_ROS_RESTARTED';

/**
 * The environment in which a process can load the prepared copy; null: the current one suffices. The dynamic linker reads
 * LD_LIBRARY_PATH only when a process starts, so a change needs a restart (`process.execve`).
 */
export function environmentFor(prepared: Prepared, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv | null {
  const libraries = libraryFolder(prepared);
  const path = (environment['LD_LIBRARY_PATH'] ?? '').split(':').filter((folder) => folder !== '');
  if (path[0] === libraries || environment[RESTARTED] === String(process.pid)) return null;
  // First, because a sourced workspace may contain another version of the same package.
  const joined = [libraries, ...path.filter((folder) => folder !== libraries)].join(':');
  return { ...environment, LD_LIBRARY_PATH: joined, [RESTARTED]: String(process.pid) };
}
