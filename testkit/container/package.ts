import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

export type PackageArchitecture = 'amd64' | 'arm64';

export interface BuiltPackage {
  /** Absolute path of the .deb. */
  readonly file: string;
  readonly version: string;
}

const builds = new Map<PackageArchitecture, Promise<BuiltPackage>>();

/** The dpkg architecture of this machine. */
export async function ownArchitecture(): Promise<PackageArchitecture> {
  return (await run('dpkg', ['--print-architecture'])).stdout.trim() as PackageArchitecture;
}

/**
 * The package of this checkout, built if it is missing or older than its sources. Concurrent test files wait for one build
 * (`scripts/deb.sh` has the lock). EDGE_HEALTH_DEB names a .deb to use instead for the architecture of this machine. A build takes about
 * a minute.
 */
export async function builtPackage(architecture?: PackageArchitecture): Promise<BuiltPackage> {
  const own = await ownArchitecture();
  const wanted = architecture ?? own;
  const given = process.env['EDGE_HEALTH_DEB'];
  if (given !== undefined && wanted === own) return { file: resolve(given), version: await field(given, 'Version') };
  let build = builds.get(wanted);
  if (build === undefined) {
    build = buildNow(wanted);
    builds.set(wanted, build);
  }
  return build;
}

async function buildNow(architecture: PackageArchitecture): Promise<BuiltPackage> {
  await run('sh', ['scripts/deb.sh', '--arch', architecture, '--if-needed'], { cwd: ROOT, maxBuffer: 64e6 });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const file = join(ROOT, 'dist', `edge-health_${version}_${architecture}.deb`);
  if (!existsSync(file)) throw new Error(`npm run deb did not make ${file}`);
  return { file, version };
}

/** A field of the control file of a package; empty if it is missing. */
export async function field(file: string, name: string): Promise<string> {
  return (await run('dpkg-deb', ['--field', file, name])).stdout.trim();
}

export interface Changes {
  readonly version: string;
  /** Files that differ in this version, as text by absolute path; null if the version does not have the file. */
  readonly files?: Readonly<Record<string, string | null>>;
}

/**
 * Creates another version of a built package in `folder` (by default in a new temporary folder), like an older or a newer release: its
 * version number differs, in dpkg and in `edge-health version`, and so may some of its files. Compression is skipped, because it takes a
 * second or two. Returns the new .deb.
 */
export async function repackaged(file: string, { version, files = {} }: Changes, folder?: string): Promise<string> {
  const work = mkdtempSync(join(folder ?? tmpdir(), 'edge-health-repackaged-'));
  const tree = join(work, 'tree');
  await run('dpkg-deb', ['--raw-extract', file, tree]);
  const control = join(tree, 'DEBIAN/control');
  writeFileSync(
    control,
    readFileSync(control, 'utf8').replace(/^Version: .*$/m, () => `Version: ${version}`),
  );
  const manifest = join(tree, 'usr/lib/edge-health/package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, unknown>;
  writeFileSync(manifest, `${JSON.stringify({ ...content, version }, null, 2)}\n`);
  // dpkg computes them if a package has none.
  rmSync(join(tree, 'DEBIAN/md5sums'));
  const conffiles = join(tree, 'DEBIAN/conffiles');
  for (const [path, text] of Object.entries(files)) {
    if (text === null) {
      rmSync(join(tree, path));
      const kept = readFileSync(conffiles, 'utf8')
        .split('\n')
        .filter((line) => line !== path);
      writeFileSync(conffiles, kept.join('\n'));
    } else {
      writeFileSync(join(tree, path), text);
    }
  }
  const target = join(
    work,
    basename(file).replace(/_[^_]+_/, () => `_${version}_`),
  );
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, target]);
  rmSync(tree, { recursive: true });
  return target;
}
