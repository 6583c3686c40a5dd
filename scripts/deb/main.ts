/** npm run deb: builds the Debian package. The options are in options.ts. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stageAddon } from './addon.ts';
import { ownArchitecture } from './architectures.ts';
import { newestInput } from './inputs.ts';
import { targetLibraries } from './libraries.ts';
import { thirdPartyLicences } from './licences.ts';
import { stageModules } from './modules.ts';
import { HELP, type Options, readOptions } from './options.ts';
import { stageRuntime, unpackedNode } from './runtime.ts';
import { normalise, stageProgram } from './stage.ts';
import { BuildFailed, logged, progress } from './step.ts';
import { checkTools } from './tools.ts';

const CACHE = 'build/cache';

function build({ architecture: target, version: wanted, out, ifNeeded }: Options): void {
  const own = ownArchitecture();
  const started = new Date();
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string; dependencies: { node: string } };
  const file = join(out, `edge-health_${wanted ?? manifest.version}_${target.debian}.deb`);
  if (ifNeeded && existsSync(file) && statSync(file).mtimeMs > newestInput()) return;
  checkTools(target, own);

  const work = join('build/deb', target.debian);
  const root = join(work, 'edge-health');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  mkdirSync(CACHE, { recursive: true });
  progress(`Staging edge-health ${wanted ?? manifest.version} for ${target.debian}...`);
  const version = stageProgram(root, wanted);
  const node = unpackedNode(target, CACHE);
  const libraries = targetLibraries(target, own, CACHE);
  stageRuntime(target, node, libraries.libatomic, root);
  stageModules(target, root);
  progress('Compiling the addon of sd-notify...');
  stageAddon(target, node, libraries, work, root);
  writeFileSync(join(root, 'third-party-licences'), thirdPartyLicences(node, manifest.dependencies.node));
  normalise(root);

  progress('Packing (half a minute to two minutes)...');
  logged(
    join(work, 'build.log'),
    'dpkg-buildpackage',
    ['--build=binary', '--unsigned-changes', '--no-pre-clean', `--host-arch=${target.debian}`],
    {
      folder: root,
      environment: { DEB_BUILD_OPTIONS: 'nocheck', SOURCE_DATE_EPOCH: undefined, LC_ALL: 'C.UTF-8' },
    },
  );
  const made = join(work, `edge-health_${version}_${target.debian}.deb`);
  mkdirSync(out, { recursive: true });
  const files = target === own ? [file, join(out, 'edge-health.deb')] : [file];
  for (const copy of files) {
    copyFileSync(made, copy);
    // Files that change from now on must be newer than the package.
    utimesSync(copy, started, started);
  }
  rmSync(join(root, 'debian/edge-health'), { recursive: true });
  const megabytes = (statSync(file).size / 1e6).toFixed(1);
  const next = target === own ? `; sudo apt install "${resolve(file)}"` : '';
  progress(`${files.map((one) => resolve(one)).join('\n')}\n${megabytes} MB${next}`);
}

try {
  const options = readOptions(process.argv.slice(2), ownArchitecture());
  if (options.help) process.stdout.write(HELP);
  else build(options);
} catch (error) {
  if (!(error instanceof BuildFailed)) throw error;
  process.stderr.write(`npm run deb: ${error.message}\n`);
  process.exitCode = 1;
}
