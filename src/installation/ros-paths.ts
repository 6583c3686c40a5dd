import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installation } from './installation.ts';
import { PROGRAMS } from './programs.ts';

/** Where root prepares for all services of a machine. They load native code from it: it is root's, and not in the data folder, which is theirs. */
const PACKAGE_ROS = '/var/lib/edge-health-ros';

/** What rclnodejs is prepared from, and where (ros/rclnodejs/prepared.ts, RosPaths): of a checkout in the data folder; null: in the usual one. */
export function rosPaths(dataPath: string | null, { dataFolder, folder, isPackage } = installation()) {
  const ofCheckout = [...new Set([dataPath ?? dataFolder, dataFolder])].map((data) => join(data, 'ros'));
  const [preparedRoot = PACKAGE_ROS, ...otherRoots] = isPackage ? [PACKAGE_ROS] : [...ofCheckout, PACKAGE_ROS];
  return {
    preparedRoot,
    otherRoots,
    // Of a checkout everything is its owner's.
    owners: isPackage ? [0] : [0, process.geteuid?.() ?? 0, statSync(folder).uid],
    interfaces: fileURLToPath(PROGRAMS.rosInterfaces),
    rclnodejs: fileURLToPath(PROGRAMS.rclnodejs),
  };
}
