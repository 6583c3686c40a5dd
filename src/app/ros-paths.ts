import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../installation/programs.ts';
import type { RosPaths } from '../ros/rclnodejs/prepared.ts';

/** The data folders of the package and of a checkout, where `edge-health ros-setup` prepares when nothing else is said. */
const USUAL_DATA = ['/var/lib/edge-health', join(dirname(fileURLToPath(PROGRAMS.manifest)), 'data')];

/** What rclnodejs is prepared from, and where in the data folder. */
export function rosPaths(dataPath: string): RosPaths {
  return {
    preparedRoot: join(dataPath, 'ros'),
    otherRoots: USUAL_DATA.filter((folder) => folder !== dataPath).map((folder) => join(folder, 'ros')),
    interfaces: fileURLToPath(PROGRAMS.rosInterfaces),
    rclnodejs: fileURLToPath(PROGRAMS.rclnodejs),
  };
}
