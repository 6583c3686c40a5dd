import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { writeTree } from '../../testkit/machines.ts';
import { ROOT } from '../../testkit/service.ts';

// The ament packages as files, without ROS 2. That they build and launch is test/system/ros2/launch.test.ts.

const PACKAGES = ['edge_health', 'edge_health_interfaces'] as const;
const ROLES = ['edge_brain', 'sensor_node', 'actuator_node'];
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { version } = JSON.parse(text('package.json')) as { version: string };

/** Name, version and dependencies of a package.xml, by a parser of XML. */
function manifest(name: string): Record<string, string[]> {
  const program = `
import json, sys, xml.etree.ElementTree as tree
found = {}
for child in tree.parse(sys.argv[1]).getroot().iter():
    found.setdefault(child.tag, []).append((child.text or '').strip())
print(json.dumps(found))`;
  const { stdout, stderr, status } = spawnSync('python3', ['-c', program, join(ROOT, `ros2/${name}/package.xml`)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`package.xml of ${name}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, string[]>;
}

t.test('manifests: well-formed, named as their folder and their project, of the product’s version', async (t) => {
  for (const name of PACKAGES) {
    const found = manifest(name);
    t.same(found['name'], [name]);
    t.same(found['version'], [version]);
    t.same(found['build_type'], ['ament_cmake']);
    t.same(found['buildtool_depend']?.[0], 'ament_cmake');
    t.match(text(`ros2/${name}/CMakeLists.txt`), new RegExp(`^project\\(${name}( NONE)?\\)$(?:.*\\n)*ament_package\\(\\)$`, 'm'));
  }
  t.same(manifest('edge_health_interfaces')['member_of_group'], ['rosidl_interface_packages']);
  t.same(manifest('edge_health')['exec_depend']?.sort(), ['edge_health_interfaces', 'launch', 'launch_ros', 'ros2launch']);
});

t.test('every definition is built, and every file that is installed exists', async (t) => {
  const listed = [...text('ros2/edge_health_interfaces/CMakeLists.txt').matchAll(/"((?:msg|srv)\/\w+\.\w+)"/g)]
    .map(([, file]) => file)
    .sort();
  const there = globSync('{msg,srv}/*', { cwd: join(ROOT, 'ros2/edge_health_interfaces') }).sort();
  t.same(listed, there);
  t.equal(there.length, 4);
  const installed = [...text('ros2/edge_health/CMakeLists.txt').matchAll(/\b(?:launch|config|scripts)\/[\w.]+/g)].map(([file]) => file);
  t.ok(installed.length >= 6, `${installed.length} files`);
  for (const file of installed) t.ok(existsSync(join(ROOT, 'ros2/edge_health', file)), file);
  for (const role of ROLES) t.ok(installed.includes(`config/${role}_config.yaml`), role);
});

/** A role's configuration, checked as `edge-health check-config` does it. */
function configOf(t: Test, role: string): Config {
  const loaded = loadConfig(join(ROOT, `config/${role}_config.yaml`));
  if (!loaded.ok) return t.bailout(`config/${role}_config.yaml: ${JSON.stringify(loaded.errors)}`) as never;
  return loaded.config;
}

t.test('the roles’ configurations are valid, run on one machine, and answer a shutdown once', async (t) => {
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
  t.same(
    configs.map(({ safe_shutdown }) => safe_shutdown.enabled),
    [true, false, false],
  );
  t.same(
    configs.map(({ ros }) => ros.gather),
    [true, false, false],
  );
});

t.test('the launch file compiles', async (t) => {
  const out = join(temporaryFolder(t), 'compiled.pyc');
  const program = 'import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], doraise=True)';
  const { status, stderr } = spawnSync('python3', ['-c', program, join(ROOT, 'launch/multi_node_monitoring.launch.py'), out], {
    encoding: 'utf8',
  });
  t.equal(status, 0, stderr);
  t.ok(existsSync(out));
});

/** An installed package: executables under both names, and products that say how they were called. */
function installation(
  t: Test,
  products: readonly string[] = [],
): { folder: string; run: (name: string, env?: NodeJS.ProcessEnv) => string[] } {
  const folder = temporaryFolder(t);
  for (const name of ['edge_health_node', 'edge-health']) {
    cpSync(join(ROOT, 'ros2/edge_health/scripts/edge_health_node'), join(folder, 'prefix/lib/edge_health', name));
  }
  for (const product of products) writeTree(folder, { [`${product}/bin/edge-health`]: `#!/bin/sh\necho ${product} "$@"\n` });
  if (products.length > 0) spawnSync('chmod', ['-R', '+x', ...products.map((product) => join(folder, product))]);
  const run = (name: string, env: NodeJS.ProcessEnv = {}): string[] => {
    const { stdout, stderr, status } = spawnSync(join(folder, 'prefix/lib/edge_health', name), ['--config', 'a b'], {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', ...env },
    });
    return [`${status}`, stdout.trim(), stderr.trim()];
  };
  return { folder, run };
}

t.test('the executables find the product, and say so where there is none', async (t) => {
  const { folder, run } = installation(t, ['home', 'checkout', 'path']);
  const elsewhere = ['/usr/lib/edge-health/bin/edge-health', '/opt/edge-health/bin/edge-health', '/usr/bin/edge-health'];
  if (!elsewhere.some((path) => existsSync(path))) {
    const [status, stdout, stderr] = run('edge_health_node');
    t.same([status, stdout], ['69', '']);
    t.match(stderr, /^edge_health_node: edge-health is not installed: .*\nInstall the package edge-health, or set EDGE_HEALTH_HOME/);
    t.same(run('edge_health_node', { PATH: `/usr/bin:/bin:${folder}/path/bin` }), ['0', 'path run --config a b', '']);
    t.equal(run('edge-health', { PATH: `/usr/bin:/bin:${folder}/prefix/lib/edge_health` })[0], '69', 'it does not find itself');
  }
  writeTree(folder, { 'prefix/share/edge_health/checkout': `${folder}/checkout\n` });
  t.same(run('edge_health_node'), ['0', 'checkout run --config a b', ''], 'the checkout that it was built in');
  t.same(run('edge-health'), ['0', 'checkout --config a b', ''], 'any command under the other name');
  t.same(run('edge-health', { EDGE_HEALTH_HOME: `${folder}/home` }), ['0', 'home --config a b', '']);
  const [status, , stderr] = run('edge-health', { EDGE_HEALTH_HOME: '/nowhere' });
  t.equal(status, '69');
  t.equal(stderr, 'edge-health: EDGE_HEALTH_HOME is /nowhere, but there is no program /nowhere/bin/edge-health');
});

t.test('in a checkout the executable finds the program above it', async (t) => {
  const { folder } = installation(t, ['tree']);
  cpSync(join(ROOT, 'ros2/edge_health/scripts'), join(folder, 'tree/ros2/edge_health/scripts'), { recursive: true });
  const link = join(folder, 'prefix/lib/edge_health/linked');
  spawnSync('ln', ['-s', join(folder, 'tree/ros2/edge_health/scripts/edge_health_node'), link]);
  const { stdout } = spawnSync(link, [], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });
  t.equal(stdout.trim(), 'tree run', `as colcon build --symlink-install leaves ${basename(link)}`);
});

t.test('the package’s folder holds the launch file and configurations of the checkout, not copies', async (t) => {
  for (const file of ['launch/multi_node_monitoring.launch.py', ...ROLES.map((role) => `config/${role}_config.yaml`)]) {
    t.equal(readFileSync(join(ROOT, 'ros2/edge_health', file), 'utf8'), text(file), file);
  }
});
