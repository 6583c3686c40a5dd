import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A ROS 2 installation that the environment points to. Whether it works is tested by the probe. */
export interface SourcedRos {
  readonly state: 'sourced';
  /** `jazzy`. */
  readonly distro: string;
  /** Install prefixes, in order of precedence. */
  readonly prefixes: readonly string[];
  /** The librcl.so that would be loaded. */
  readonly librcl: string;
}

/** `none`: ROS 2 is not sourced. `broken`: it is sourced, but cannot work; the reason includes the remedy. */
export type SourcedRosResult =
  | SourcedRos
  | { readonly state: 'none'; readonly reason: string }
  | { readonly state: 'broken'; readonly reason: string };

const TOO_OLD = ['ardent', 'bouncy', 'crystal', 'dashing', 'eloquent', 'foxy', 'galactic'];
/** Major version of the package rcl, by which distributions can be distinguished. */
const RCL_MAJOR: Readonly<Record<string, number>> = { humble: 5, jazzy: 9, kilted: 10 };
const ELF_MACHINE: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
/** Library folders of the dynamic linker in addition to LD_LIBRARY_PATH. */
const SYSTEM_LIBRARIES = ['/lib', '/usr/lib', '/usr/local/lib', '/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu'];

/** Checks the environment variables of a ROS 2 setup file and the files they point to. Loads no library. */
export function findSourcedRos(environment: NodeJS.ProcessEnv, systemLibraries: readonly string[] = SYSTEM_LIBRARIES): SourcedRosResult {
  const distro = environment['ROS_DISTRO'] ?? '';
  const prefixes = list(environment['AMENT_PREFIX_PATH']);
  if (distro === '' && prefixes.length === 0) return { state: 'none', reason: 'no ROS 2 is sourced' };
  if (environment['ROS_VERSION'] === '1') return { state: 'none', reason: `ROS 1 ${distro} is sourced, no ROS 2` };
  const folder = `/opt/ros/${/^[a-z]+$/.test(distro) ? distro : 'jazzy'}`;
  const again = `source the setup file of the distribution again, such as ${folder}/setup.bash`;
  if (distro === '') return broken(`AMENT_PREFIX_PATH is set but ROS_DISTRO is not: ${again}`);
  if (!/^[a-z]{1,32}$/.test(distro))
    return broken(`ROS_DISTRO is ${JSON.stringify(distro)}, which is not the name of a distribution: ${again}`);
  if (TOO_OLD.includes(distro)) return broken(`ROS 2 ${distro} is too old: Humble or a later one is needed`);
  if (prefixes.length === 0) return broken(`ROS_DISTRO is ${distro} but AMENT_PREFIX_PATH is empty: ${again}`);
  const present = prefixes.filter((prefix) => existsSync(prefix));
  if (present.length === 0) return broken(`ROS 2 ${distro} is sourced, but ${prefixes.join(' and ')} does not exist: ${again}`);
  const libraryPath = list(environment['LD_LIBRARY_PATH']);
  const librcl = [...libraryPath, ...systemLibraries].map((folder) => join(folder, 'librcl.so')).find(isFile);
  if (librcl === undefined) {
    const looked = libraryPath.length === 0 ? 'LD_LIBRARY_PATH is empty' : `it is in none of ${libraryPath.join(', ')}`;
    return broken(`ROS 2 ${distro} is sourced, but librcl.so is not found (${looked}): ${again}, or install ros-${distro}-ros-core`);
  }
  const libraries = [...libraryPath, ...present.map((prefix) => join(prefix, 'lib')), ...systemLibraries];
  const middleware = middlewareProblem(environment['RMW_IMPLEMENTATION'] ?? '', distro, libraries);
  if (middleware !== null) return broken(middleware);
  const problem = libraryProblem(librcl);
  if (problem !== null) return broken(`ROS 2 ${distro} is sourced, but ${librcl} ${problem}: install ros-${distro}-ros-core again`);
  const found = rclMajor(present);
  const wanted = RCL_MAJOR[distro];
  if (found !== null && wanted !== undefined && found !== wanted) {
    const really = Object.keys(RCL_MAJOR).find((name) => RCL_MAJOR[name] === found) ?? `the distribution with rcl ${found}`;
    return broken(`ROS_DISTRO is ${distro}, but what is installed in ${present.join(', ')} is ${really}: source one distribution alone`);
  }
  return { state: 'sourced', distro, prefixes: present, librcl };
}

/** The path in the first prefix that contains this file or folder; null: none does. */
export function inPrefixes(prefixes: readonly string[], path: string): string | null {
  return prefixes.map((prefix) => join(prefix, path)).find((full) => existsSync(full)) ?? null;
}

function broken(reason: string): SourcedRosResult {
  return { state: 'broken', reason };
}

/** Null: the library of the middleware exists, or none is configured. */
function middlewareProblem(name: string, distro: string, libraries: readonly string[]): string | null {
  if (name === '') return null;
  if (!/^\w+$/.test(name)) {
    const given = JSON.stringify(name);
    return `RMW_IMPLEMENTATION=${given} is not the name of a middleware; set it to one such as rmw_fastrtps_cpp, or unset it`;
  }
  if (libraries.some((folder) => isFile(join(folder, `lib${name}.so`)))) return null;
  const packageName = `ros-${distro}-${name.replaceAll('_', '-')}`;
  return `RMW_IMPLEMENTATION=${name}: lib${name}.so is not found; install ${packageName}, or unset RMW_IMPLEMENTATION`;
}

function list(path: string | undefined): string[] {
  return (path ?? '').split(':').filter((entry) => entry !== '');
}

/** False for a path that cannot be searched (EACCES, ELOOP), which `throwIfNoEntry` does not cover; the dynamic linker skips it as well. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Checks the ELF header (System V ABI): magic, class 2 for 64 bits, machine in octets 18 and 19. Null: no problem. */
function libraryProblem(file: string): string | null {
  let head: Buffer;
  try {
    head = readFileSync(file).subarray(0, 20);
  } catch (error) {
    return `cannot be read (${(error as NodeJS.ErrnoException).code ?? (error as Error).message})`;
  }
  if (head.length < 20 || head.readUInt32BE(0) !== 0x7f454c46) return 'is not a shared library';
  const machine = ELF_MACHINE[process.arch];
  const wrong = head[4] !== 2 || (machine !== undefined && head.readUInt16LE(18) !== machine);
  return wrong ? `is for another kind of machine than this one (${process.arch})` : null;
}

function rclMajor(prefixes: readonly string[]): number | null {
  const manifest = inPrefixes(prefixes, 'share/rcl/package.xml');
  if (manifest === null) return null;
  try {
    const version = /<version>\s*(\d+)\./.exec(readFileSync(manifest, 'utf8'));
    return version ? Number(version[1]) : null;
  } catch {
    return null;
  }
}
