/** Starts programs in the network of the test itself; their arguments decide which interfaces they use. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

export const THIS_MACHINE = {
  spawn: (program: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess => spawn(program, args, options),
};

/** Prevents the ROS 2 environment variables of the calling shell from changing the graph of a program. */
export const NO_ROS = {
  ROS_DISTRO: '',
  AMENT_PREFIX_PATH: '',
  ROS_DOMAIN_ID: '',
  ROS_LOCALHOST_ONLY: '',
  ROS_AUTOMATIC_DISCOVERY_RANGE: '',
  ROS_STATIC_PEERS: '',
  RMW_IMPLEMENTATION: '',
} as const;
