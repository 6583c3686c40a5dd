import type { DiscoveryRange } from './graph.ts';
import type { Prepared, RosFinding } from './rclnodejs/prepared.ts';

export interface TransportChoice {
  readonly transport: 'rclnodejs' | 'embedded' | 'off';
  /** The reason, for the log and /status. */
  readonly reason: string;
  /** Whether the choice differs from the configuration or from the sourced ROS 2, which requires a warning. */
  readonly fallback: boolean;
  /** The prepared copy of rclnodejs to load; null with the other transports. */
  readonly prepared: Prepared | null;
}

export interface Circumstances {
  readonly discoveryRange: DiscoveryRange;
  /** SROS2 is enforced, so the embedded participant, which does not implement DDS Security, must not be used. */
  readonly securityEnforced: boolean;
}

/** Called only when the result matters. */
export interface RosProbes {
  readonly find: () => RosFinding;
  /** Tests the prepared copy in a separate process; null: it works; otherwise the problem. */
  readonly probe: (prepared: Prepared) => Promise<string | null>;
}

/**
 * Chooses the transport. `auto`: rclnodejs if a usable ROS 2 is sourced and prepared, otherwise the embedded participant. Never rejects:
 * a configured transport that cannot be used results in `off`.
 */
export async function chooseTransport(
  configured: 'auto' | 'rclnodejs' | 'embedded' | 'off',
  { discoveryRange, securityEnforced }: Circumstances,
  probes: RosProbes,
): Promise<TransportChoice> {
  if (configured === 'off') return choice('off', 'ros.transport is off');
  if (discoveryRange === 'OFF') return choice('off', 'the discovery range is OFF: no socket is opened');
  const embedded = (reason: string, fallback = false): TransportChoice => {
    if (securityEnforced) return choice('off', `${reason}, but ROS_SECURITY_STRATEGY is Enforce, and embedded is not secured`, true);
    return choice('embedded', fallback ? `${reason}; embedded instead` : reason, fallback);
  };
  const unusable = (reason: string, fallback: boolean): TransportChoice => {
    if (configured === 'auto') return embedded(reason, fallback);
    return choice('off', `${reason}; ros.transport is rclnodejs, so ROS 2 is disabled until this is corrected`, true);
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
