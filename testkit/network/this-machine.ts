/** Starts programs in the network that the test itself is in; what they are told to use of it is up to the test. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

export const THIS_MACHINE = {
  spawn: (program: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess => spawn(program, args, options),
};

/** Environment variables of ROS 2 in the shell that runs the tests must not decide where on the graph a program is. */
export const NO_ROS = {
  ROS_DISTRO: '',
  AMENT_PREFIX_PATH: '',
  ROS_DOMAIN_ID: '',
  ROS_LOCALHOST_ONLY: '',
  ROS_AUTOMATIC_DISCOVERY_RANGE: '',
  ROS_STATIC_PEERS: '',
  RMW_IMPLEMENTATION: '',
} as const;
