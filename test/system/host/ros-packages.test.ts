import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';

/** The manifests and the launch file of the ament packages, as Python reads them. */

const PACKAGES = ['edge_health', 'edge_health_interfaces'] as const;
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

/** Name, version and dependencies of a package.xml, read by an XML parser. */
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

t.test('manifests are well-formed, with the names of their folder and project, and the version of the product', async (t) => {
  for (const name of PACKAGES) {
    const found = manifest(name);
    t.same(found['name'], [name]);
    t.same(found['version'], [version]);
    t.same(found['build_type'], ['ament_cmake']);
    t.same(found['buildtool_depend']?.[0], 'ament_cmake');
  }
  t.same(manifest('edge_health_interfaces')['member_of_group'], ['rosidl_interface_packages']);
  t.same(manifest('edge_health')['exec_depend']?.sort(), [
    'diagnostic_aggregator',
    'edge_health_interfaces',
    'launch',
    'launch_ros',
    'ros2launch',
  ]);
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
