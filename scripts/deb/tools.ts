import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './architectures.ts';
import { BuildFailed } from './step.ts';

/** Throws BuildFailed with the Debian packages to install if a program or header that the build needs is missing. */
export function checkTools(target: Architecture, own: Architecture | null): void {
  const cross = target !== own;
  const programs: readonly (readonly [program: string, debian: string])[] = [
    ['dpkg-buildpackage', 'dpkg-dev'],
    ['dh', 'debhelper'],
    ['patchelf', 'patchelf'],
    ['python3', 'python3'],
    ['tar', 'tar'],
    ['xz', 'xz-utils'],
    [`${target.gnu}-strip`, cross ? target.crossCompiler : 'build-essential'],
    [`${target.gnu}-g++`, cross ? target.crossCompiler : 'build-essential'],
  ];
  const missing = programs.filter(([program]) => !isOnPath(program)).map(([program, debian]) => ({ what: program, debian }));
  // dpkg-buildpackage requires the package itself, not only its contents.
  if (!isInstalled('build-essential')) missing.push({ what: 'build-essential', debian: 'build-essential' });
  // Files of the target's own packages are downloaded for another architecture (libraries.ts), and must be installed for this one.
  if (!cross && !existsSync('/usr/include/systemd/sd-daemon.h')) missing.push({ what: 'systemd/sd-daemon.h', debian: 'libsystemd-dev' });
  if (!cross && !existsSync(`/usr/lib/${target.gnu}/libatomic.so.1`)) missing.push({ what: 'libatomic.so.1', debian: 'libatomic1' });
  if (cross && !isOnPath('apt-get')) missing.push({ what: 'apt-get', debian: 'apt' });
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map(({ debian }) => debian))].sort().join(' ');
  throw new BuildFailed(
    `missing: ${missing.map(({ what }) => what).join(', ')}\nOn Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages}`,
  );
}

function isInstalled(debian: string): boolean {
  const { stdout } = spawnSync('dpkg-query', ['--status', debian], { encoding: 'utf8' });
  return stdout?.includes('Status: install ok installed') ?? false;
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
