import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Architecture } from './architectures.ts';
import { BuildFailed, output, progress } from './step.ts';

/** Paths of the libraries and headers of the target architecture. */
export interface TargetLibraries {
  readonly libatomic: string;
  /** Folders in which the compiler and the linker find libsystemd; none: in those of this machine. */
  readonly includes: readonly string[];
  readonly libraries: readonly string[];
}

const PACKAGES = ['libatomic1', 'libsystemd-dev', 'libsystemd0'];

/** The libraries of this machine, or those of the target's Debian packages, unpacked into the cache. Throws BuildFailed. */
export function targetLibraries(target: Architecture, own: Architecture | null, cache: string): TargetLibraries {
  if (target === own) return { libatomic: realpathSync(`/usr/lib/${target.gnu}/libatomic.so.1`), includes: [], libraries: [] };
  const sysroot = resolve(cache, `libraries-${target.debian}`);
  const done = join(sysroot, '.unpacked');
  if (!existsSync(done)) {
    rmSync(sysroot, { recursive: true, force: true });
    for (const file of downloadPackages(target, PACKAGES, resolve(cache, `apt-${target.debian}`)))
      output('dpkg-deb', ['-x', file, sysroot]);
    writeFileSync(done, '');
  }
  const library = join(sysroot, 'usr/lib', target.gnu);
  return {
    libatomic: realpathSync(join(library, 'libatomic.so.1')),
    includes: [join(sysroot, 'usr/include')],
    // The development package's links point to the folder into which the library itself is unpacked.
    libraries: [library, join(sysroot, 'lib', target.gnu)],
  };
}

/**
 * Fetches packages of another architecture with apt, using separate package lists, because a build should not run `dpkg
 * --add-architecture`. Returns the .deb files.
 */
export function downloadPackages(target: Architecture, packages: readonly string[], state: string): string[] {
  progress(`Fetching ${packages.join(', ')} of ${target.debian} (once)...`);
  const archives = join(state, 'archives');
  rmSync(archives, { recursive: true, force: true });
  for (const folder of ['lists/partial', 'archives/partial']) mkdirSync(join(state, folder), { recursive: true });
  writeFileSync(join(state, 'status'), '');
  const options = [
    `Dir::State=${state}`,
    `Dir::State::status=${join(state, 'status')}`,
    `Dir::Cache=${state}`,
    `APT::Architecture=${target.debian}`,
    `APT::Architectures=${target.debian}`,
    'APT::Sandbox::User=',
    'Acquire::Languages=none',
    'Debug::NoLocking=1',
  ].flatMap((option) => ['-o', option]);
  try {
    output('apt-get', ['-q', ...options, 'update']);
    output('apt-get', ['-q', ...options, 'download', ...packages], { folder: archives });
  } catch (error) {
    throw new BuildFailed(
      `${(error as Error).message}\nThe package sources of this machine (/etc/apt) must have ${target.debian} as well; Ubuntu keeps arm64 on ports.ubuntu.com.`,
    );
  }
  return readdirSync(archives)
    .filter((file) => file.endsWith('.deb'))
    .sort()
    .map((file) => join(archives, file));
}
