import type { DiscoveryRange } from './graph.ts';
import type { RosFinding } from './rclnodejs/finding.ts';
import type { Prepared } from './rclnodejs/prepared.ts';

export interface TransportChoice {
  readonly transport: 'rclnodejs' | 'embedded' | 'off';
  /** Why, in words for the log and /status. */
  readonly reason: string;
  /** Somebody meant it otherwise: a warning. */
  readonly fallback: boolean;
  /** What rclnodejs is to be loaded from; null with the other transports. */
  readonly prepared: Prepared | null;
}

/** What the choice depends on. */
export interface Circumstances {
  readonly discoveryRange: DiscoveryRange;
  /** SROS2 is enforced: nothing unsecured may go out, and the embedded participant knows no security. */
  readonly securityEnforced: boolean;
}

/** Each is asked only when it matters. */
export interface RosProbes {
  readonly find: () => RosFinding;
  /** Tries what was prepared in a process of its own; null: it works, else what went wrong. */
  readonly probe: (prepared: Prepared) => Promise<string | null>;
}

/**
 * Chooses how to take part in the ROS 2 graph. `auto` takes rclnodejs where a usable ROS 2 is sourced and prepared, else the
 * embedded participant. Never rejects: what was asked for and cannot be used is `off`.
 */
export async function chooseTransport(
  configured: 'auto' | 'rclnodejs' | 'embedded' | 'off',
  { discoveryRange, securityEnforced }: Circumstances,
  probes: RosProbes,
): Promise<TransportChoice> {
  if (configured === 'off') return choice('off', 'ros.transport is off');
  if (discoveryRange === 'OFF') return choice('off', 'the discovery range is OFF: nothing is opened');
  const embedded = (reason: string, fallback = false): TransportChoice => {
    if (securityEnforced) return choice('off', `${reason}, but ROS_SECURITY_STRATEGY is Enforce, and embedded is not secured`, true);
    return choice('embedded', fallback ? `${reason}; embedded instead` : reason, fallback);
  };
  const unusable = (reason: string, meant: boolean): TransportChoice => {
    if (configured === 'auto') return embedded(reason, meant);
    return choice('off', `${reason}; ros.transport is rclnodejs, so there is no ROS 2 graph until that is put right`, true);
  };
  if (configured === 'embedded') return embedded('ros.transport is embedded');
  const found = probes.find();
  if (found.state === 'none') return unusable(found.reason, false);
  if (found.state === 'broken') return unusable(found.reason, true);
  const { distro } = found.ros;
  if (found.state === 'unprepared') return unusable(`ROS 2 ${distro} is sourced, but ${found.reason}`, true);
  const problem = await probes.probe(found.prepared).catch((error: Error) => error.message);
  if (problem !== null) return unusable(`ROS 2 ${distro} is sourced and prepared, but does not work: ${problem}`, true);
  return { transport: 'rclnodejs', reason: `ROS 2 ${distro} is sourced and prepared`, fallback: false, prepared: found.prepared };
}

function choice(transport: 'embedded' | 'off', reason: string, fallback = false): TransportChoice {
  return { transport, reason, fallback, prepared: null };
}
