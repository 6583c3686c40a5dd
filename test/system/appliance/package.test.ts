import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { bundledPackages } from '../../../scripts/deb/licences.ts';
import { modulePackages } from '../../../scripts/deb/modules.ts';
import { copyParts, copyRclnodejs, SOURCE_PARTS } from '../../../src/ros/rclnodejs/setup/private-copy.ts';
import { nodeHeaders } from '../../../src/ros/rclnodejs/setup/toolchain.ts';
import { builtPackage, field, ownArchitecture, type PackageArchitecture } from '../../../testkit/container/package.ts';
import { type Elf, filesBelow, isNewer, listContent, readElf, unpack } from './support/package-content.ts';

t.setTimeout(600_000);

const PROGRAM = 'usr/lib/edge-health';
const DOC = 'usr/share/doc/edge-health';
/** For sites that monitor many machines, with examples and unit tests of the rules. */
const FLEET = 'usr/share/edge-health/fleet';
const MAX_BYTES = 45e6;
/** Ubuntu 22.04, the oldest system that the package is for. */
const OLDEST = new Map([
  ['GLIBC', '2.35'],
  ['GLIBCXX', '3.4.30'],
  ['CXXABI', '1.3.13'],
]);
/** The symbol versions of the C++ library that the package depends on. */
const OF_LIBSTDCXX = new Map([['9', { GLIBCXX: '3.4.26', CXXABI: '1.3.11' }]]);
/** The addons of rclnodejs are for one release of Ubuntu each, and loaded only where they load. */
const RELEASES = new Map([
  ['jammy', { glibc: '2.35', glibcxx: '3.4.30' }],
  ['noble', { glibc: '2.39', glibcxx: '3.4.33' }],
  ['resolute', { glibc: '2.43', glibcxx: '3.4.35' }],
]);
/** Kernels of arm64 have pages of 4, 16 (Raspberry Pi 5) or 64 KiB. */
const LARGEST_PAGES: Readonly<Record<PackageArchitecture, number>> = { amd64: 4096, arm64: 65536 };
/** The package that contains a library. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  libc6: ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'],
  'libgcc-s1': ['libgcc_s.so.1'],
  'libstdc++6': ['libstdc++.so.6'],
  libsystemd0: ['libsystemd.so.0'],
};
const CONFFILES = [
  '/etc/default/edge-health',
  '/etc/edge-health/actuator_node_config.yaml',
  '/etc/edge-health/edge_brain_config.yaml',
  '/etc/edge-health/edge_health_config.yaml',
  '/etc/edge-health/hardened.yaml',
  '/etc/edge-health/sensor_node_config.yaml',
  '/etc/edge-health/shutdown.d/README',
];
/** Everything that is executable as a command. */
const EXECUTABLES = [
  ...[`/${PROGRAM}/bin/edge-health`, `/${PROGRAM}/bin/with-ros2`, `/${PROGRAM}/runtime/bin/node`],
  ...[`/${FLEET}/examples/containers/prepare.sh`, `/${FLEET}/examples/systemd/install.sh`],
];

const { version, dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string;
  dependencies: { node: string };
};
const own = await ownArchitecture();
const machine = (architecture: PackageArchitecture): string => (architecture === 'amd64' ? 'x86-64' : 'aarch64');

/** `libc6 (>= 2.28), a | b` → libc6: 2.28, a: '', b: ''. */
function declared(depends: string): Map<string, string> {
  return new Map(
    depends.split(/[,|]/).map((item) => {
      const [, name = '', atLeast = ''] = /^\s*(\S+)(?: \(>= (.*)\))?\s*$/.exec(item) ?? [];
      return [name, atLeast];
    }),
  );
}

for (const architecture of ['amd64', 'arm64'] as const) {
  t.test(architecture, async (t) => {
    const { file } = await builtPackage(architecture);
    const folder = unpack(t, file);
    const depends = declared(await field(file, 'Depends'));
    const files = filesBelow(folder);

    t.test('has the right control fields and a limited size', async (t) => {
      t.equal(await field(file, 'Package'), 'edge-health');
      t.equal(await field(file, 'Version'), version);
      t.equal(await field(file, 'Architecture'), architecture);
      t.ok(statSync(file).size <= MAX_BYTES, `${statSync(file).size} bytes are at most ${MAX_BYTES}`);
      t.same(await field(file, 'Recommends'), '', 'nothing more is fetched');
      t.same(
        [...depends.keys()].sort(),
        [...['libc6', 'libgcc-s1', 'libstdc++6', 'libsystemd0', 'systemd']],
        'depends on nothing that the machine it was built on has let in',
      );
      const manifest = JSON.parse(readFileSync(join(folder, PROGRAM, 'package.json'), 'utf8')) as Record<string, unknown>;
      t.match(manifest, { name: 'edge-health', version, packaged: true, private: true });
    });

    t.test('belongs to root, and only root can write to it', async (t) => {
      const entries = listContent(file);
      t.ok(entries.length > 1000);
      t.same([...new Set(entries.map(({ owner }) => owner))], ['root/root']);
      const modes = new Set(entries.map(({ mode }) => mode));
      t.same([...modes].sort(), ['-rw-r--r--', '-rwxr-xr-x', 'drwxr-xr-x', 'lrwxrwxrwx']);
      const executables = entries.filter(({ mode }) => mode === '-rwxr-xr-x').map(({ path }) => path);
      t.same(executables.sort(), EXECUTABLES);
      const links = entries.filter(({ target }) => target !== null).map(({ path, target }) => [path, target]);
      t.same(links, [['/usr/bin/edge-health', '../lib/edge-health/bin/edge-health']]);
    });

    t.test('has its configuration as conffiles, and nothing else', async (t) => {
      const conffiles = readFileSync(join(folder, 'DEBIAN/conffiles'), 'utf8').trim().split('\n');
      t.same(conffiles.sort(), CONFFILES);
      const etc = files.filter((path) => path.startsWith('etc/')).map((path) => `/${path}`);
      t.same(etc.sort(), CONFFILES);
      t.same(
        readFileSync(join(folder, 'etc/edge-health/edge_health_config.yaml'), 'utf8'),
        readFileSync('config/edge_health_config.yaml', 'utf8'),
      );
    });

    t.test('contains everything that the checkout provides for it', async (t) => {
      const has = (path: string): boolean => t.ok(existsSync(join(folder, path)), path);
      for (const name of ['main', 'store-worker', 'inventory', 'ops', 'harness', 'ros-probe']) has(`${PROGRAM}/dist/${name}.cjs`);
      for (const extension of ['js', 'css']) has(`${PROGRAM}/dist/harness-chart.${extension}`);
      for (const path of filesBelow('dist/dashboard')) has(`${PROGRAM}/dist/dashboard/${path}`);
      for (const path of filesBelow('ros2/edge_health_interfaces')) has(`${PROGRAM}/ros2/edge_health_interfaces/${path}`);
      for (const unit of filesBelow('systemd').filter((path) => !path.endsWith('.md'))) has(`usr/lib/systemd/system/${unit}`);
      has('usr/share/polkit-1/rules.d/edge-health.rules');
      has('var/lib/polkit-1/localauthority/10-vendor.d/edge-health.pkla');
      has('usr/lib/sysusers.d/edge-health.conf');
      has('usr/share/bash-completion/completions/edge-health');
      has('usr/share/man/man8/edge-health.8.gz');
      has('usr/share/man/man5/edge_health_config.5.gz');
      for (const path of filesBelow('ops/fleet').filter((path) => !/\.ts$|^README\.md$/.test(path))) has(`${FLEET}/${path}`);
      for (const path of filesBelow('ops/notify/templates')) has(`usr/share/edge-health/notify/templates/${path}`);
      const documentation = filesBelow('docs').filter((path) => !path.startsWith('man/'));
      t.ok(documentation.length > 60, `${documentation.length} files`);
      for (const path of documentation) has(`${DOC}/${path}`);
      const own = files.filter((path) => !path.startsWith(FLEET));
      const leaked = own.filter((path) => /(?:^|\/)(?:tests?|examples|\.[^/]+)\/|\.map$|\.d\.[cm]?ts$|\.test\.|electron/.test(path));
      t.same(leaked, [], 'nothing that is only for developers');
    });

    t.test('contains no path of the machine it was built on', async (t) => {
      const suspects = files.filter((path) => !path.startsWith(`${PROGRAM}/runtime/bin/`) && statSync(join(folder, path)).size < 5e6);
      t.ok(suspects.length > 1000);
      const places = ['build/deb', 'node_modules', 'src'].map((name) => join(process.cwd(), name));
      const leaking = suspects.filter((path) => places.some((place) => readFileSync(join(folder, path)).includes(place)));
      t.same(leaking, []);
    });

    t.test('its binaries are for this architecture and for the oldest supported system', async (t) => {
      const binaries = new Map<string, Elf>();
      for (const path of files) {
        const elf = readElf(join(folder, path));
        if (elf !== null) binaries.set(path.slice(PROGRAM.length + 1), elf);
      }
      const addons = [...binaries.keys()].filter((path) => path.includes('/prebuilds/'));
      t.ok(addons.length >= 3, 'addons of rclnodejs');
      const rest = ['node_modules/sd-notify/build/Release/notify.node', 'runtime/bin/node', 'runtime/lib/libatomic.so.1'];
      t.same([...binaries.keys()].sort(), [...addons, ...rest].sort());
      const provided = new Set([...depends.keys()].flatMap((name) => LIBRARIES[name] ?? []));
      for (const [path, elf] of binaries) {
        t.equal(elf.machine, machine(architecture), path);
        t.ok(elf.largestPage >= LARGEST_PAGES[architecture], `${path} can be loaded by every kernel: ${elf.largestPage}`);
        const unmet = elf.needed.filter((library) => !provided.has(library));
        const release = RELEASES.get(/-([a-z]+)-[a-z0-9]+-node-rclnodejs\.node$/.exec(path)?.[1] ?? '');
        if (path.includes('/prebuilds/')) {
          t.ok(release, `${path} is for a known release`);
          t.same(
            unmet.filter((library) => !/^lib(?:rcl|rcutils|rmw|rosidl)/.test(library)),
            [],
            `${path} needs ROS 2 and what is declared`,
          );
          t.notOk(isNewer(elf.newest.get('GLIBC') ?? '0', release?.glibc ?? '0'), `${path}: libc`);
          t.notOk(isNewer(elf.newest.get('GLIBCXX') ?? '0', release?.glibcxx ?? '0'), `${path}: libstdc++`);
          continue;
        }
        t.same(unmet, path === 'runtime/bin/node' ? ['libatomic.so.1'] : [], `what ${path} needs is declared or comes along`);
        for (const [kind, newest] of OLDEST) t.notOk(isNewer(elf.newest.get(kind) ?? '0', newest), `${path}: ${kind}`);
        t.notOk(isNewer(elf.newest.get('GLIBC') ?? '0', depends.get('libc6') ?? '0'), `${path}: libc6 is declared`);
        const cxx = OF_LIBSTDCXX.get(depends.get('libstdc++6') ?? '');
        t.notOk(isNewer(elf.newest.get('GLIBCXX') ?? '0', cxx?.GLIBCXX ?? '0'), `${path}: libstdc++6 is declared`);
        t.notOk(isNewer(elf.newest.get('CXXABI') ?? '0', cxx?.CXXABI ?? '0'), `${path}: libstdc++6 is declared`);
      }
      t.equal(binaries.get('runtime/bin/node')?.runpath, '$ORIGIN/../lib');
    });

    t.test('contains the licence of each third-party program', async (t) => {
      const texts = gunzipSync(readFileSync(join(folder, DOC, 'third-party-licences.gz'))).toString();
      const copyright = readFileSync(join(folder, DOC, 'copyright'), 'utf8');
      t.match(texts, `Node.js ${dependencies.node}`);
      t.match(texts, /OpenSSL, located at deps\/openssl/);
      const bundled = bundledPackages();
      t.ok(bundled.length > 50);
      const inModules = new Set(modulePackages().map(({ path }) => path));
      for (const { path, name, version } of bundled) {
        const begin = texts.indexOf(`\n${name} ${version}\n`);
        const section = texts.slice(begin, texts.indexOf('='.repeat(80), begin + 100));
        t.ok(begin > 0 && section.length > 700, `the text for ${name} ${version}`);
        t.ok(inModules.has(path) ? copyright.includes(`${path}/*`) : copyright.includes(name), `${name} is in debian/copyright`);
      }
      // The programs name the packages that are bundled into them; a package's own bundler has left such lines as well.
      const locked = Object.keys((JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: object }).packages);
      const known = new Set(bundled.map(({ path }) => path));
      const named = new Set<string>();
      for (const program of files.filter((path) => /\/dist\/[^/]+\.cjs$/.test(path))) {
        const source = readFileSync(join(folder, program), 'utf8');
        for (const [, path = ''] of source.matchAll(/^\s*\/\/ ((?:node_modules\/(?:@[^/\s]+\/)?[^/\s]+\/)+)/gm))
          named.add(path.slice(0, -1));
      }
      t.ok(named.size >= 5, `${named.size} packages are bundled`);
      t.same(
        [...named].filter((path) => locked.includes(path) && !known.has(path)),
        [],
      );
      for (const path of inModules) {
        const kept = filesBelow(join(folder, PROGRAM, path)).some((name) => /^(?:licen[cs]e|copying)/i.test(name));
        t.ok(kept, `${path} keeps its licence, for copies that are made of it`);
      }
    });

    t.test('has no errors and warnings of lintian', { skip: existsSync('/usr/bin/lintian') ? false : 'needs lintian' }, async (t) => {
      const { status, stdout } = spawnSync('lintian', ['--fail-on', 'error,warning', '--allow-root', file], { encoding: 'utf8' });
      t.equal(stdout, '');
      t.equal(status, 0);
    });
  });
}

t.test('the package contains what ros-setup needs', async (t) => {
  const { file } = await builtPackage(own);
  const folder = join(unpack(t, file), PROGRAM);
  const node = join(folder, 'runtime/bin/node');
  const work = mkdtempSync(join(tmpdir(), 'edge-health-addon-'));
  t.teardown(() => rmSync(work, { recursive: true, force: true }));

  t.test('the parts of rclnodejs that it copies and compiles', async (t) => {
    copyRclnodejs(join(folder, 'node_modules/rclnodejs'), work);
    copyParts(join(folder, 'node_modules/rclnodejs'), join(work, 'sources'), SOURCE_PARTS);
    const run = spawnSync(node, ['-e', "require('./node_modules/rclnodejs/rosidl_gen/index.cjs')"], { cwd: work, encoding: 'utf8' });
    t.equal(run.status, 0, run.stderr);
    const described = readFileSync(join(work, 'sources/binding.gyp'), 'utf8');
    for (const [, path = ''] of described.matchAll(/'\.\/((?:src|third_party)\/[^']+\.cpp)'/g)) {
      t.ok(existsSync(join(folder, 'node_modules/rclnodejs', path)), path);
    }
    for (const [, path = ''] of described.matchAll(/scripts\/(\w+\.cjs)/g)) t.ok(existsSync(join(work, 'sources/scripts', path)), path);
  });

  t.test('headers and node-gyp, which compile an addon with all that rclnodejs includes', async (t) => {
    t.equal(nodeHeaders(node), join(folder, 'runtime'));
    const addon = join(work, 'addon');
    cpSync('testkit/fixtures/addon', addon, { recursive: true });
    symlinkSync(join(folder, 'node_modules'), join(addon, 'node_modules'));
    const gyp = join(folder, 'node_modules/node-gyp/bin/node-gyp.js');
    const built = spawnSync(node, [gyp, 'rebuild', '--nodedir', nodeHeaders(node) as string], {
      cwd: addon,
      encoding: 'utf8',
      env: { PATH: `${join(folder, 'runtime/bin')}:/usr/bin:/bin`, HOME: work },
    });
    t.equal(built.status, 0, built.stderr);
    const said = execFileSync(node, ['-p', "require('./build/Release/addon.node').versions()"], { cwd: addon, encoding: 'utf8' });
    t.match(said, /^node 26, uv 1\n$/);
  });
});

t.test('the program runs where it is unpacked', async (t) => {
  const { file } = await builtPackage(own);
  const folder = join(unpack(t, file), PROGRAM);
  const run = (...args: string[]): string =>
    execFileSync(join(folder, 'bin/edge-health'), args, { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });
  t.equal(run('version'), `edge-health ${version} (Node ${dependencies.node})\n`);
  const config = join(folder, '../../../etc/edge-health/edge_health_config.yaml');
  t.match(run('check-config', config), /: valid/);
  for (const role of ['edge_brain', 'sensor_node', 'actuator_node']) {
    t.match(run('check-config', join(folder, `../../../etc/edge-health/${role}_config.yaml`)), /: valid/);
  }
  const notify = "console.log(Object.keys(require('./node_modules/sd-notify')).includes('ready'))";
  t.equal(
    execFileSync(join(folder, 'runtime/bin/node'), ['-e', notify], { cwd: folder, encoding: 'utf8' }),
    'true\n',
    'the addon of sd-notify loads',
  );
});
