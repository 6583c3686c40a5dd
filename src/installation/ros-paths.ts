import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from './programs.ts';

/** The data folders of the package and of a checkout, where `edge-health ros-setup` prepares when nothing else is said. */
const USUAL_DATA = ['/var/lib/edge-health', join(dirname(fileURLToPath(PROGRAMS.manifest)), 'data')] as const;

/** What rclnodejs is prepared from, and where in the data folder (ros/rclnodejs/prepared.ts, RosPaths); null: in the usual ones. */
export function rosPaths(dataPath: string | null) {
  const [own, ...others] = [...new Set([...(dataPath === null ? [] : [dataPath]), ...USUAL_DATA])];
  return {
    preparedRoot: join(own ?? USUAL_DATA[0], 'ros'),
    otherRoots: others.map((folder) => join(folder, 'ros')),
    interfaces: fileURLToPath(PROGRAMS.rosInterfaces),
    rclnodejs: fileURLToPath(PROGRAMS.rclnodejs),
  };
}
