import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { graphNames } from '../../src/ros/names.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { writeTree } from '../../testkit/machine/machines.ts';
import { ROOT } from '../../testkit/service/service.ts';

/**
 * The ament packages as files. What Python has to read is test/system/host/ros-packages.test.ts; that they build and launch is
 * test/system/ros2/launch.test.ts.
 */

const PACKAGES = ['edge_health', 'edge_health_interfaces'] as const;
const ROLES = ['edge_brain', 'sensor_node', 'actuator_node'];
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { version } = JSON.parse(text('package.json')) as { version: string };

t.test('manifests have the names of their folder and project, and the version of the product', async (t) => {
  for (const name of PACKAGES) {
    const manifest = text(`ros2/${name}/package.xml`);
    t.same(
      [...manifest.matchAll(/^ {2}<(?:name|version)>(.*)<\/\w+>$/gm)].map(([, found]) => found),
      [name, version],
    );
    t.match(text(`ros2/${name}/CMakeLists.txt`), new RegExp(`^project\\(${name}( NONE)?\\)$(?:.*\\n)*ament_package\\(\\)$`, 'm'));
  }
});

t.test('every definition is built, and every file that is installed exists', async (t) => {
  const listed = [...text('ros2/edge_health_interfaces/CMakeLists.txt').matchAll(/"((?:msg|srv)\/\w+\.\w+)"/g)]
    .map(([, file]) => file)
    .sort();
  const there = globSync('{msg,srv}/*', { cwd: join(ROOT, 'ros2/edge_health_interfaces') }).sort();
  t.same(listed, there);
  t.equal(there.length, 5);
  const installed = [...text('ros2/edge_health/CMakeLists.txt').matchAll(/\b(?:launch|config|scripts|viewers)\/[\w.]+/g)].map(
    ([file]) => file,
  );
  t.ok(installed.length >= 6, `${installed.length} files`);
  for (const file of installed) t.ok(existsSync(join(ROOT, 'ros2/edge_health', file)), file);
  for (const role of ROLES) t.ok(installed.includes(`config/${role}_config.yaml`), role);
  for (const file of globSync('viewers/*', { cwd: join(ROOT, 'ros2/edge_health') })) t.ok(installed.includes(file), file);
});

t.test('manifests name every package that is built with, launched, or part of a message', async (t) => {
  const all = (path: string, pattern: RegExp): string[] => [...new Set([...text(path).matchAll(pattern)].map(([, found = '']) => found))];
  for (const name of PACKAGES) {
    const built = all(`ros2/${name}/CMakeLists.txt`, /^find_package\((\w+)/gm);
    t.ok(built.includes('ament_cmake'));
    const declared = all(`ros2/${name}/package.xml`, /<(?:buildtool_|build_)?depend>(.*)<\//g);
    t.same(built.sort(), declared.sort(), `${name} is built with what it declares`);
  }
  const launch = 'launch/multi_node_monitoring.launch.py';
  const imported = all(launch, /^(?:from|import) (\w+)/gm).filter((module) => module !== 'os');
  const started = all(launch, /(?:\bpackage=|FindPackageShare\()'(\w+)'/g).filter((name) => name !== 'edge_health');
  t.ok(imported.length >= 2 && started.length >= 1);
  // The launch file is started with ros2launch, and its programs publish the messages of the interfaces.
  const run = [...imported, ...started, 'edge_health_interfaces', 'ros2launch'].sort();
  t.same(all('ros2/edge_health/package.xml', /<exec_depend>(.*)<\//g).sort(), run);
  const used = globSync('ros2/edge_health_interfaces/{msg,srv}/*', { cwd: ROOT }).flatMap((file) => all(file, /^(\w+)\/\w+/gm));
  t.same([...new Set(used)], all('ros2/edge_health_interfaces/package.xml', /<depend>(.*)<\//g));
});

/** A role's configuration, checked as `edge-health check-config` does it. */
function configOf(t: Test, role: string): Config {
  const loaded = loadConfig(join(ROOT, `config/${role}_config.yaml`));
  if (!loaded.ok) return t.bailout(`config/${role}_config.yaml: ${JSON.stringify(loaded.errors)}`) as never;
  return loaded.config;
}

t.test('the roles’ configurations are valid, run on one machine, and respond to a shutdown once', async (t) => {
  const configs = ROLES.map((role) => configOf(t, role));
  t.same(
    configs.map(({ node_name }) => node_name),
    ROLES,
  );
  t.same(
    configs.map(({ rest }) => rest.port),
    [5000, 5001, 5002],
  );
  t.equal(new Set(configs.map(({ storage }) => storage.path)).size, ROLES.length, 'a data folder each');
  const nodes = configs.flatMap(({ node_name, ros }) => Object.values(graphNames({ node_name, namespace: ros.namespace }, []).nodes));
  t.equal(new Set(nodes).size, 4 * ROLES.length, 'no two nodes of one name');
  t.same(
    configs.map(({ safe_shutdown }) => safe_shutdown.enabled),
    [true, false, false],
  );
  t.same(
    configs.map(({ ros }) => ros.observe),
    ['always', 'never', 'never'],
  );
});

/**
 * An installed package: executables under both names, and products that print how they were called. What is installed on this machine is
 * out of sight: the PATH has the three programs that the executable needs, and its fixed folders are below the test's.
 */
function installation(
  t: Test,
  products: readonly string[] = [],
): { folder: string; path: string; run: (name: string, env?: NodeJS.ProcessEnv) => string[] } {
  const folder = temporaryFolder(t);
  const script = text('ros2/edge_health/scripts/edge_health_node').replace('/usr/lib/edge-health /opt/edge-health', `"${folder}/lib"`);
  writeTree(folder, { 'prefix/lib/edge_health/edge_health_node': script, 'prefix/lib/edge_health/edge-health': script });
  for (const product of products) writeTree(folder, { [`${product}/bin/edge-health`]: `#!/bin/sh\necho ${product} "$@"\n` });
  for (const program of ['prefix/lib/edge_health/*', '*/bin/edge-health'].flatMap((pattern) => globSync(pattern, { cwd: folder }))) {
    chmodSync(join(folder, program), 0o755);
  }
  const path = join(folder, 'path of programs');
  mkdirSync(path);
  for (const name of ['cat', 'dirname', 'readlink']) {
    symlinkSync(['/usr/bin', '/bin'].map((where) => join(where, name)).find((file) => existsSync(file)) as string, join(path, name));
  }
  const run = (name: string, env: NodeJS.ProcessEnv = {}): string[] => {
    const { stdout, stderr, status } = spawnSync(join(folder, 'prefix/lib/edge_health', name), ['--config', 'a b'], {
      encoding: 'utf8',
      env: { PATH: path, ...env },
    });
    return [`${status}`, stdout.trim(), stderr.trim()];
  };
  return { folder, path, run };
}

t.test('the executables find the product, and report when there is none', async (t) => {
  const { folder, path, run } = installation(t, ['home', 'checkout', 'path', 'lib']);
  t.same(run('edge_health_node'), ['0', 'lib run --config a b', ''], 'the package’s folder');
  rmSync(join(folder, 'lib'), { recursive: true });
  const [missing, stdout, problem] = run('edge_health_node');
  t.same([missing, stdout], ['69', '']);
  t.match(problem, /^edge_health_node: edge-health is not installed: .*\nInstall the package edge-health, or set EDGE_HEALTH_HOME/);
  t.same(run('edge_health_node', { PATH: `${path}:${folder}/path/bin` }), ['0', 'path run --config a b', '']);
  t.equal(run('edge-health', { PATH: `${path}:${folder}/prefix/lib/edge_health` })[0], '69', 'it does not find itself');
  writeTree(folder, { 'prefix/share/edge_health/checkout': `${folder}/checkout\n` });
  t.same(run('edge_health_node'), ['0', 'checkout run --config a b', ''], 'the checkout that it was built in');
  t.same(run('edge-health'), ['0', 'checkout --config a b', ''], 'any command under the other name');
  t.same(run('edge-health', { EDGE_HEALTH_HOME: `${folder}/home` }), ['0', 'home --config a b', '']);
  const [status, , stderr] = run('edge-health', { EDGE_HEALTH_HOME: '/nowhere' });
  t.equal(status, '69');
  t.equal(stderr, 'edge-health: EDGE_HEALTH_HOME is /nowhere, but there is no program /nowhere/bin/edge-health');
});

t.test('in a checkout the executable finds the program above it', async (t) => {
  const { folder, path } = installation(t, ['tree']);
  cpSync(join(ROOT, 'ros2/edge_health/scripts'), join(folder, 'tree/ros2/edge_health/scripts'), { recursive: true });
  const link = join(folder, 'prefix/lib/edge_health/linked');
  symlinkSync(join(folder, 'tree/ros2/edge_health/scripts/edge_health_node'), link);
  const { stdout } = spawnSync(link, [], { encoding: 'utf8', env: { PATH: path } });
  t.equal(stdout.trim(), 'tree run', `as colcon build --symlink-install leaves ${basename(link)}`);
});

t.test('the package’s folder contains the launch file and configurations of the checkout, not copies', async (t) => {
  for (const file of ['launch/multi_node_monitoring.launch.py', ...ROLES.map((role) => `config/${role}_config.yaml`)]) {
    t.equal(readFileSync(join(ROOT, 'ros2/edge_health', file), 'utf8'), text(file), file);
  }
});
