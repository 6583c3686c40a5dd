import type { spawn } from 'node:child_process';
import { join } from 'node:path';
import { environmentFor, type Prepared } from '../../src/ros/rclnodejs/prepared.ts';
import { findSourcedRos } from '../../src/ros/rclnodejs/sourced-environment.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { ROOT } from '../../testkit/service/service.ts';

/** A sourced ROS 2 that was prepared for rclnodejs. */
export interface RosInstallation {
  readonly prepared: Prepared;
  /** Environment for processes that load rclnodejs. */
  readonly environment: NodeJS.ProcessEnv;
  /** `jazzy, rmw_cyclonedds_cpp`. */
  readonly name: string;
  /** The data folder's `ros`. */
  readonly folder: string;
}

/** Kept between runs, because compiling takes minutes; `ros-setup` checks whether it is still valid. */
const DATA = join(ROOT, 'node_modules/.cache/edge-health-bench-ros');

/**
 * Returns the current environment and removes a sourced ROS 2 from that of this process: the peers use Debian's libraries and code
 * generators, of which ROS 2 has other versions.
 */
export function unsourceRos(): NodeJS.ProcessEnv {
  const sourced = { ...process.env };
  const prefixes = (sourced['AMENT_PREFIX_PATH'] ?? '').split(':').filter((prefix) => prefix !== '');
  const isOfRos = (folder: string): boolean => prefixes.some((prefix) => folder === prefix || folder.startsWith(`${prefix}/`));
  for (const list of ['PATH', 'LD_LIBRARY_PATH']) {
    const kept = (sourced[list] ?? '').split(':').filter((folder) => folder !== '' && !isOfRos(folder));
    if (kept.length > 0) process.env[list] = kept.join(':');
    else delete process.env[list];
  }
  for (const name of Object.keys(sourced))
    if (/^(ROS|RMW|AMENT|COLCON|CMAKE_PREFIX|CYCLONEDDS|FASTRTPS|FASTDDS)_/.test(name)) delete process.env[name];
  return sourced;
}

/** Prepares rclnodejs with `edge-health ros-setup`, or returns the reason why that is not possible. */
export async function prepareRos(
  sourced: NodeJS.ProcessEnv,
  host: Host,
  cleanup: Cleanup,
): Promise<RosInstallation | { readonly reason: string }> {
  const ros = findSourcedRos(sourced);
  if (ros.state !== 'sourced') return { reason: ros.reason };
  const argv = ['ros-setup', '--data', DATA, '--json'];
  const child = cleanup.own(
    host.spawn(join(ROOT, 'bin/edge-health'), argv, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...sourced } }) as ReturnType<
      typeof spawn
    >,
  );
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) return { reason: `edge-health ros-setup failed for ROS 2 ${ros.distro} (exit code ${code}, see above)` };
  const { prepared } = JSON.parse(output) as { readonly prepared: Prepared };
  const middleware = sourced['RMW_IMPLEMENTATION'] ?? "the distribution's own middleware";
  return {
    prepared,
    environment: environmentFor(prepared, sourced) ?? sourced,
    name: `ROS 2 ${ros.distro}, ${middleware}`,
    folder: join(DATA, 'ros'),
  };
}
