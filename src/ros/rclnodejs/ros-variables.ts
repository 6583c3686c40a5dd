import type { DiscoverySettings } from '../graph.ts';

/** Environment variables to set, or to remove where null, for these settings. rcl reads them when it is initialized. */
export function discoveryVariables(distro: string, discovery: DiscoverySettings): Readonly<Record<string, string | null>> {
  const domain = { ROS_DOMAIN_ID: String(discovery.domainId) };
  // Humble supports neither discovery ranges nor static peers.
  const isLocal = discovery.discoveryRange === 'LOCALHOST' || discovery.discoveryRange === 'OFF';
  if (distro === 'humble') return { ...domain, ROS_LOCALHOST_ONLY: isLocal ? '1' : '0' };
  return {
    ...domain,
    ROS_AUTOMATIC_DISCOVERY_RANGE: discovery.discoveryRange,
    ROS_STATIC_PEERS: discovery.staticPeers.length === 0 ? null : discovery.staticPeers.join(';'),
    // Later distributions still read it, and it overrides the range.
    ROS_LOCALHOST_ONLY: null,
  };
}

/** Applies the variables in place. Changes of process.env are visible to native code. */
export function applyVariables(environment: NodeJS.ProcessEnv, variables: Readonly<Record<string, string | null>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === null) delete environment[name];
    else environment[name] = value;
  }
}

/** Whether ROS_SECURITY_ENABLE enables SROS2, whose policies determine the permitted nodes and topics. */
export function isSecured(environment: NodeJS.ProcessEnv): boolean {
  return environment['ROS_SECURITY_ENABLE'] === 'true';
}

/** Whether unsecured nodes are forbidden; otherwise SROS2 falls back to them when security files are missing. */
export function isSecurityEnforced(environment: NodeJS.ProcessEnv): boolean {
  return isSecured(environment) && environment['ROS_SECURITY_STRATEGY'] === 'Enforce';
}
