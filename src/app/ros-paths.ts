import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RosPaths } from '../ros/rclnodejs/prepared.ts';
import { PROGRAMS } from './programs.ts';

/** What rclnodejs is prepared from, and where in the data folder. */
export function rosPaths(dataPath: string): RosPaths {
  return {
    preparedRoot: join(dataPath, 'ros'),
    interfaces: fileURLToPath(PROGRAMS.rosInterfaces),
    rclnodejs: fileURLToPath(PROGRAMS.rclnodejs),
  };
}
