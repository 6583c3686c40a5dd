import { spawnSync } from 'node:child_process';

/** A Debian architecture for which the package is built, with its names in other programs. */
export interface Architecture {
  readonly debian: 'amd64' | 'arm64';
  /** Name in `process.arch` and in npm packages. */
  readonly node: 'x64' | 'arm64';
  /** Prefix of the GNU tools, and the name of the library folder. */
  readonly gnu: string;
  /** Debian package with the cross compiler, for a machine of another architecture. */
  readonly crossCompiler: string;
}

export const ARCHITECTURES: readonly Architecture[] = [
  { debian: 'amd64', node: 'x64', gnu: 'x86_64-linux-gnu', crossCompiler: 'g++-x86-64-linux-gnu' },
  { debian: 'arm64', node: 'arm64', gnu: 'aarch64-linux-gnu', crossCompiler: 'g++-aarch64-linux-gnu' },
];

/** The architecture of this machine's dpkg, or null if dpkg is missing or the package is not built for it. */
export function ownArchitecture(): Architecture | null {
  const name = spawnSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).stdout?.trim();
  return ARCHITECTURES.find(({ debian }) => debian === name) ?? null;
}
