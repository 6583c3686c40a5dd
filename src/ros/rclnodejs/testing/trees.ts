import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import type { RosPaths } from '../prepared.ts';

/** Writes files below a folder, by their relative paths. */
export function write(root: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
}

const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };

/** The first octets of a 64-bit shared library for a machine; this one by default. */
export function elfHead(machine = MACHINES[process.arch] ?? 0): Buffer {
  const head = Buffer.alloc(64);
  head.writeUInt32BE(0x7f454c46, 0);
  head[4] = 2;
  head.writeUInt16LE(machine, 18);
  return head;
}

/** An install prefix with the files of a ROS 2 distribution that are checked without loading it. */
export function fakePrefix(t: Test, rclVersion = '9.2.4'): string {
  const root = temporaryFolder(t);
  write(root, {
    'lib/librcl.so': elfHead(),
    'share/rcl/package.xml': `<package format="3">\n  <name>rcl</name>\n  <version>${rclVersion}</version>\n</package>\n`,
  });
  return root;
}

/** The environment variables of a setup file. */
export function sourcedEnvironment(prefix: string, distro = 'jazzy'): NodeJS.ProcessEnv {
  return { ROS_DISTRO: distro, ROS_VERSION: '2', AMENT_PREFIX_PATH: prefix, LD_LIBRARY_PATH: join(prefix, 'lib') };
}

/** A product with an interface package and an rclnodejs, both of a few bytes, and an empty data folder. */
export function fakePaths(t: Test): RosPaths {
  const root = temporaryFolder(t);
  write(root, {
    'ros2/edge_health_interfaces/CMakeLists.txt': 'project(edge_health_interfaces)\n',
    'ros2/edge_health_interfaces/msg/Alert.msg': 'string alert_id\n',
    'ros2/edge_health_interfaces/msg/HealthStatus.msg': 'float64 cpu_percent\n',
    'ros2/edge_health_interfaces/srv/SafeShutdown.srv': 'string reason\n---\nbool success\n',
    'node_modules/rclnodejs/package.json': '{ "name": "rclnodejs", "version": "2.2.0" }\n',
  });
  return {
    preparedRoot: join(root, 'data/ros'),
    otherRoots: [join(root, 'var/ros')],
    owners: [process.geteuid?.() ?? 0],
    interfaces: join(root, 'ros2/edge_health_interfaces'),
    rclnodejs: join(root, 'node_modules/rclnodejs'),
  };
}

/** A prepared folder that appears complete. */
export function fakePrepared(paths: RosPaths, key: string): string {
  const made = join(paths.preparedRoot, key);
  write(made, {
    'prepared.json': JSON.stringify({ key, architecture: process.arch, addon: 'compiled', made: '2026-01-01T00:00:00.000Z' }),
    'node_modules/rclnodejs/build/Release/rclnodejs.node': '',
    'interfaces/lib/libedge_health_interfaces__rosidl_typesupport_c.so': '',
  });
  for (const folder of [paths.preparedRoot, made]) chmodSync(folder, 0o755); // Independent of the umask.
  return made;
}
