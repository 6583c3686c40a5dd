import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inPrefixes } from '../sourced-environment.ts';
import { runCommand, SetupFailed, type Workspace } from './run-command.ts';

/** The interfaces that rclnodejs loads for this product. Its array wrappers need the messages of primitive types. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  edge_health_interfaces: ['msg/Alert.msg', 'msg/AlertArray.msg', 'msg/HealthStatus.msg', 'msg/ShutdownStatus.msg', 'srv/SafeShutdown.srv'],
  builtin_interfaces: ['msg/Time.msg'],
  diagnostic_msgs: ['msg/DiagnosticArray.msg', 'msg/DiagnosticStatus.msg', 'msg/KeyValue.msg'],
  rcl_interfaces: [
    ...['FloatingPointRange', 'IntegerRange', 'ListParametersResult', 'Parameter', 'ParameterDescriptor', 'ParameterEvent'],
    ...['ParameterType', 'ParameterValue', 'SetParametersResult'],
  ]
    .map((name) => `msg/${name}.msg`)
    .concat(
      ['DescribeParameters', 'GetParameterTypes', 'GetParameters', 'ListParameters', 'SetParameters', 'SetParametersAtomically'].map(
        (name) => `srv/${name}.srv`,
      ),
    ),
  service_msgs: ['msg/ServiceEventInfo.msg'],
  std_msgs: [
    ...['Bool', 'Byte', 'Char', 'Float32', 'Float64', 'Int8', 'Int16', 'Int32', 'Int64', 'String'],
    ...['UInt8', 'UInt16', 'UInt32', 'UInt64', 'Header'],
  ].map((name) => `msg/${name}.msg`),
};
/** Absent in Humble, where services have no events. */
const OPTIONAL = ['service_msgs'];
/** The generator reads a package's name after the first `/share/` of a path; a relative prefix contains no other one. */
const VIEW = 'prefix';
const GENERATE = "require('./node_modules/rclnodejs/rosidl_gen/index.cjs').generateAll(true)";

/**
 * Generates rclnodejs' message code from a prefix that contains only the needed interfaces: a distribution has a thousand messages, and
 * the generator starts a Python process for each of them at the same time.
 */
export async function generateMessageCode(workspace: Workspace): Promise<void> {
  const { ros, paths, folder } = workspace;
  const view = join(folder, VIEW);
  const index = join(view, 'share/ament_index/resource_index/rosidl_interfaces');
  mkdirSync(index, { recursive: true });
  const packages = Object.entries(NEEDED).filter(
    ([name]) => !OPTIONAL.includes(name) || inPrefixes(ros.prefixes, `share/${name}`) !== null,
  );
  for (const [name, files] of packages) {
    for (const file of files) {
      const source = name === 'edge_health_interfaces' ? join(paths.interfaces, file) : inPrefixes(ros.prefixes, `share/${name}/${file}`);
      if (source === null)
        throw new SetupFailed(
          `${name}/${file} is in none of ${ros.prefixes.join(', ')}: install ros-${ros.distro}-${name.replaceAll('_', '-')}`,
        );
      const target = join(view, 'share', name, file);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(source, target);
    }
    writeFileSync(join(index, name), files.map((file) => `${file}\n`).join(''));
  }
  const environment = { ...workspace.environment, AMENT_PREFIX_PATH: VIEW };
  await runCommand(workspace, 'generating message code', process.execPath, ['-e', GENERATE], { environment });
  rmSync(view, { recursive: true });
  const generated = join(folder, 'node_modules/rclnodejs/generated');
  for (const [name, files] of packages) {
    for (const file of files) {
      const [kind = '', base = ''] = file.split('/');
      const made = join(generated, name, `${name}__${kind}__${base.replace(/\.\w+$/, '')}.js`);
      if (!existsSync(made)) throw new SetupFailed(`rclnodejs did not generate ${made}; its output: ${workspace.logFile}`);
    }
  }
}
