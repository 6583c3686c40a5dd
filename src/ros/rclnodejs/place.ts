import type { GraphPlace } from '../graph.ts';

/** Environment variables to set (or, where null, to remove) so that rcl goes to this place; it reads them when it is initialised. */
export function placeVariables(distro: string, place: GraphPlace): Readonly<Record<string, string | null>> {
  const domain = { ROS_DOMAIN_ID: String(place.domainId) };
  // Humble knows neither ranges nor peers.
  const isLocal = place.discoveryRange === 'LOCALHOST' || place.discoveryRange === 'OFF';
  if (distro === 'humble') return { ...domain, ROS_LOCALHOST_ONLY: isLocal ? '1' : '0' };
  return {
    ...domain,
    ROS_AUTOMATIC_DISCOVERY_RANGE: place.discoveryRange,
    ROS_STATIC_PEERS: place.staticPeers.length === 0 ? null : place.staticPeers.join(';'),
    // Still obeyed by later distributions, and stronger than the range there.
    ROS_LOCALHOST_ONLY: null,
  };
}

/** Applies them to an environment in place. Of process.env, native code sees the change. */
export function applyVariables(environment: NodeJS.ProcessEnv, variables: Readonly<Record<string, string | null>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === null) delete environment[name];
    else environment[name] = value;
  }
}

/** Whether ROS_SECURITY_ENABLE asks for SROS2: then policies say which nodes and topics may exist. */
export function isSecured(environment: NodeJS.ProcessEnv): boolean {
  return environment['ROS_SECURITY_ENABLE'] === 'true';
}

/** Whether unsecured nodes are forbidden as well (SROS2: anything else falls back to them where the files are missing). */
export function isSecurityEnforced(environment: NodeJS.ProcessEnv): boolean {
  return isSecured(environment) && environment['ROS_SECURITY_STRATEGY'] === 'Enforce';
}
