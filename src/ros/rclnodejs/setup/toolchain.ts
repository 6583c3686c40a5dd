import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { inPrefixes, type SourcedRos } from '../sourced-environment.ts';

/** A missing prerequisite of the preparation. */
export interface Missing {
  readonly what: string;
  /** How to install it. */
  readonly remedy: string;
}

/** ROS packages needed to generate and compile code. */
const ROS_PACKAGES = [
  'ament_cmake',
  'builtin_interfaces',
  'diagnostic_msgs',
  'rcl',
  'rcl_interfaces',
  'rosidl_adapter',
  'rosidl_default_generators',
  'std_msgs',
];
const PYTHON_MODULES = 'rosidl_adapter, ament_package, catkin_pkg, em, lark';

/** Those of the compiler, cmake, Python and the ROS packages that are missing. */
export function missingTools(ros: SourcedRos, environment: NodeJS.ProcessEnv): Missing[] {
  const missing: Missing[] = [];
  const programs: readonly (readonly [program: string, debian: string])[] = [
    [environment['CXX'] ?? 'c++', 'build-essential'],
    ['make', 'build-essential'],
    ['cmake', 'cmake'],
    ['python3', 'python3'],
  ];
  for (const [program, debian] of programs) {
    if (!isOnPath(program, environment)) missing.push({ what: program, remedy: `sudo apt install ${debian}` });
  }
  const core = `sudo apt install ros-${ros.distro}-ros-core`;
  const absent = ROS_PACKAGES.filter((name) => inPrefixes(ros.prefixes, `share/${name}/package.xml`) === null);
  if (absent.length > 0) missing.push({ what: `ROS packages ${absent.join(', ')}`, remedy: core });
  if (missing.length > 0) return missing;
  const imported = spawnSync('python3', ['-c', `import ${PYTHON_MODULES}`], { env: environment, encoding: 'utf8' });
  if (imported.status !== 0) {
    const reason = imported.stderr.trimEnd().split('\n').at(-1) ?? '';
    missing.push({
      what: `Python modules of ROS 2 (${reason})`,
      remedy: `${core}; if a python3 of pyenv or conda is first on the PATH, put the system's first: PATH=/usr/bin:$PATH`,
    });
  }
  return missing;
}

export function isOnPath(program: string, environment: NodeJS.ProcessEnv): boolean {
  const name = program.split(' ')[0] as string;
  const candidates = name.includes('/') ? [name] : (environment['PATH'] ?? '').split(':').map((folder) => join(folder, name));
  return candidates.some((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * The folder whose include/node has the headers of the running Node, for node-gyp --nodedir; null: not installed. The npm package
 * `node` has them in a separate package beside or below itself.
 */
export function nodeHeaders(execPath: string): string | null {
  const root = join(execPath, '../..');
  const own = `node-linux-${process.arch}`;
  const candidates = [root, join(root, 'node_modules', own), join(root, '..', own)];
  return candidates.find((folder) => existsSync(join(folder, 'include/node/node_api.h'))) ?? null;
}
