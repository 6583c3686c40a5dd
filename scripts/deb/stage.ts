import { chmodSync, cpSync, lstatSync, lutimesSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { BuildFailed, output } from './step.ts';

/** Files copied unchanged into the tree from which debian/ builds the package; debian/edge-health.install has their targets. */
const PARTS: readonly { readonly from: string; readonly to?: string; readonly only?: RegExp }[] = [
  { from: 'bin' },
  { from: 'config', only: /\.yaml$|^README$/ },
  { from: 'debian', only: /^(?!README\.md$)/ },
  { from: 'dist/dashboard' },
  { from: 'dist', only: /\.cjs$|\.json$|\.LEGAL\.txt$|^harness-chart\./ },
  { from: 'docs', only: /\.(?:md|png|html|json|ndjson|xml|[1-9])$/ },
  { from: 'ops/fleet', only: /^(?!README\.md$|.*\.ts$)/ },
  { from: 'ops/notify/templates' },
  { from: 'polkit', only: /\.(?:rules|pkla|policy|conf)$/ },
  { from: 'ros2/edge_health_interfaces' },
  { from: 'ros2/fastdds-udp.xml' },
  { from: 'systemd', only: /\.(?:service|timer|socket|path|target|mount|slice)$/ },
];

/** Copies the program's own files to `root`. `version` overrides that of the changelog. Returns the version of the package. */
export function stageProgram(root: string, version: string | null): string {
  for (const { from, only } of PARTS) {
    const isWanted = (path: string): boolean => lstatSync(path).isDirectory() || only === undefined || only.test(basename(path));
    mkdirSync(dirname(join(root, from)), { recursive: true });
    // dist/ also contains earlier packages, and files that the rule for the dashboard above has already copied.
    cpSync(from, join(root, from), {
      recursive: true,
      filter: (path) => (from === 'dist' && /^dist\/dashboard/.test(path) ? false : isWanted(path)),
    });
  }
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Readonly<
    Record<'name' | 'version' | 'description' | 'license', string>
  >;
  const wanted = setVersion(join(root, 'debian/changelog'), manifest.version, version);
  const { name, description, license } = manifest;
  const staged = { name, version: wanted, description, license, private: true, packaged: true };
  writeFileSync(join(root, 'package.json'), `${JSON.stringify(staged, null, 2)}\n`);
  return wanted;
}

function setVersion(changelog: string, manifestVersion: string, version: string | null): string {
  const text = readFileSync(changelog, 'utf8');
  const own = /^\S+ \(([^)]+)\)/.exec(text)?.[1];
  if (own !== manifestVersion) {
    throw new BuildFailed(`debian/changelog is at version ${own}, package.json at ${manifestVersion}: add an entry for ${manifestVersion}`);
  }
  if (version === null) return own;
  writeFileSync(
    changelog,
    text.replace(/\([^)]+\)/, () => `(${version})`),
  );
  return version;
}

/** Sets everything below `root` to the time of the newest changelog entry and to modes that do not depend on the umask. */
export function normalise(root: string): void {
  const epoch = Number(output('dpkg-parsechangelog', ['-l', join(root, 'debian/changelog'), '-S', 'Timestamp']));
  const walk = (path: string): void => {
    const stat = lstatSync(path);
    if (stat.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
    if (!stat.isSymbolicLink()) chmodSync(path, stat.isDirectory() || (stat.mode & 0o100) !== 0 ? 0o755 : 0o644);
    lutimesSync(path, epoch, epoch);
  };
  walk(root);
}
