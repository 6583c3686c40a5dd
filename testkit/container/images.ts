import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { networkUnavailable } from '../network/network.ts';

const execute = promisify(execFile);
const PROGRAM = join(import.meta.dirname, 'images.sh');

/** The Debian releases that are tested: 12 and 13. */
export const SUITES = ['bookworm', 'trixie'] as const;
export type Suite = (typeof SUITES)[number];

const NEEDED: readonly (readonly [program: string, packageName: string])[] = [
  ['debootstrap', 'debootstrap'],
  ['systemd-nspawn', 'systemd-container'],
  ['mkfs.ext4', 'e2fsprogs'],
  ['ps', 'procps'],
];

/** The reason why no containers can be booted here; false if they can. For tap's `skip`. */
export function containersUnavailable(): string | false {
  if (process.getuid?.() !== 0) return 'needs root to boot containers';
  const missing = NEEDED.filter(([program]) => spawnSync(program, ['--version']).error).map(([, packageName]) => packageName);
  if (missing.length > 0) return `needs the Debian packages ${missing.join(' ')}`;
  return networkUnavailable();
}

/**
 * The layers of a minimal Debian with systemd in the syntax of overlayfs `lowerdir`; created on the first call, which needs a Debian mirror
 * and takes a minute. If `deb` is given, that package is installed, as `apt-get install` does without a running systemd.
 */
export async function rootFilesystem(suite: Suite, deb: string | null = null): Promise<string> {
  const { stdout } = await execute(PROGRAM, deb === null ? ['root', suite] : ['installed', suite, deb]);
  return stdout.trim();
}

/** The folder of a minimal Debian with its own Node, npm and git; created on the first call. */
export async function bareDebian(suite: Suite): Promise<string> {
  return (await execute(PROGRAM, ['bare', suite])).stdout.trim();
}
