import { findPrepared, type Prepared, type RosPaths } from './prepared.ts';
import { findSourcedRos, type SourcedRos } from './sourced.ts';

/** The state of ROS 2 for rclnodejs, determined without loading it. */
export type RosFinding =
  | { readonly state: 'none'; readonly reason: string }
  | { readonly state: 'broken'; readonly reason: string }
  | { readonly state: 'unprepared'; readonly ros: SourcedRos; readonly reason: string }
  | { readonly state: 'prepared'; readonly ros: SourcedRos; readonly prepared: Prepared };

/** Reads environment variables and some small files; loads no library and starts no process. */
export function findRos(environment: NodeJS.ProcessEnv, paths: RosPaths): RosFinding {
  const ros = findSourcedRos(environment);
  if (ros.state !== 'sourced') return ros;
  const prepared = findPrepared(ros.distro, paths);
  return 'reason' in prepared ? { state: 'unprepared', ros, reason: prepared.reason } : { state: 'prepared', ros, prepared };
}
