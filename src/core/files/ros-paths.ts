import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installation } from './installation.ts';
import { PROGRAMS } from './programs.ts';

/** Folder prepared for all services of a machine. They load native code from it, so it belongs to root and is not in their data folder. */
const PACKAGE_ROS = '/var/lib/edge-health-ros';

/** The paths for preparing rclnodejs (RosPaths in ros/rclnodejs/prepared.ts). `dataPath`: that of a checkout; null: the default one. */
export function rosPaths(dataPath: string | null, { dataFolder, folder, isPackage } = installation()) {
  const ofCheckout = [...new Set([dataPath ?? dataFolder, dataFolder])].map((data) => join(data, 'ros'));
  const [preparedRoot = PACKAGE_ROS, ...otherRoots] = isPackage ? [PACKAGE_ROS] : [...ofCheckout, PACKAGE_ROS];
  return {
    preparedRoot,
    otherRoots,
    // In a checkout, the files belong to its owner.
    owners: isPackage ? [0] : [0, process.geteuid?.() ?? 0, statSync(folder).uid],
    interfaces: fileURLToPath(PROGRAMS.rosInterfaces),
    rclnodejs: fileURLToPath(PROGRAMS.rclnodejs),
  };
}
