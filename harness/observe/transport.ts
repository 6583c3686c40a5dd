import { PROGRAMS } from '../../src/installation/programs.ts';
import { rosPaths } from '../../src/installation/ros-paths.ts';
import type { GraphPlace } from '../../src/ros/graph.ts';
import { graphNames } from '../../src/ros/names.ts';
import { findRos } from '../../src/ros/rclnodejs/finding.ts';
import { isSecured, isSecurityEnforced } from '../../src/ros/rclnodejs/place.ts';
import { environmentFor, type Prepared } from '../../src/ros/rclnodejs/prepared.ts';
import { probe } from '../../src/ros/rclnodejs/probe.ts';

export interface TransportOptions {
  readonly transport: 'auto' | 'embedded' | 'rclnodejs';
  readonly environment: NodeJS.ProcessEnv;
  /** Searched for rclnodejs as prepared by `edge-health ros-setup`, besides the usual folders; null: only those. */
  readonly dataFolder: string | null;
}

export type TransportChoice =
  | { readonly transport: 'embedded'; readonly reason: string }
  | { readonly transport: 'rclnodejs'; readonly reason: string; readonly prepared: Prepared };

const ENFORCED = 'ROS_SECURITY_STRATEGY is Enforce, and the embedded participant has no security';

/**
 * Chooses how to subscribe: `auto` is the embedded participant, which is light and independent of the installation that the service may
 * use, except where SROS2 is enforced. Rejects with what to do when the requested transport cannot be used.
 */
export async function chooseTransport(options: TransportOptions, place: GraphPlace): Promise<TransportChoice> {
  const { environment, transport } = options;
  const isEnforced = isSecurityEnforced(environment);
  if (transport === 'embedded' && isEnforced)
    throw new Error(`${ENFORCED}: use --transport rclnodejs, or --transport off to go by /events`);
  if (transport === 'embedded') return { transport: 'embedded', reason: 'requested' };
  if (transport === 'auto' && !isEnforced) {
    return { transport: 'embedded', reason: 'light, and independent of the ROS 2 that the service may use' };
  }
  const why = transport === 'auto' ? ENFORCED : 'requested';
  const found = findRos(environment, rosPaths(options.dataFolder));
  const instead = isEnforced ? 'or --transport off to go by /events' : 'or use --transport embedded';
  if (found.state !== 'prepared') throw new Error(`rclnodejs cannot be used: ${found.reason}; ${instead}`);
  const problem = await problemOf(found.prepared, environment, place);
  if (problem !== null) throw new Error(`rclnodejs does not work with the sourced ROS 2 ${found.ros.distro}: ${problem}; ${instead}`);
  return { transport: 'rclnodejs', reason: `${why}; ROS 2 ${found.ros.distro} is sourced and prepared`, prepared: found.prepared };
}

/** Probes rclnodejs in a separate process, since native code may crash; null: it works. With SROS2 only the real node has permissions, so there is no probe. */
async function problemOf(prepared: Prepared, environment: NodeJS.ProcessEnv, place: GraphPlace): Promise<string | null> {
  if (isSecured(environment)) return null;
  const names = graphNames({ node_name: 'health_monitor', namespace: null }, []);
  return probe(prepared, { program: PROGRAMS.rosProbe, environment, place, names, enclave: null });
}

/**
 * The environment with which this process must be replaced (process.execve) before it can use rclnodejs, since the dynamic linker reads
 * the library path only at the start; null: the present one suffices.
 */
export function transportEnvironment({ dataFolder, environment, transport }: TransportOptions): NodeJS.ProcessEnv | null {
  if (transport === 'embedded' || (transport === 'auto' && !isSecurityEnforced(environment))) return null;
  const found = findRos(environment, rosPaths(dataFolder));
  return found.state === 'prepared' ? environmentFor(found.prepared, environment) : null;
}
