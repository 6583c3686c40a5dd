import type { DiscoveryRange, DiscoverySettings } from './graph.ts';

/** The keys of the configuration's `ros` section for discovery; null: from the environment. */
export interface DiscoveryConfig {
  readonly domain_id: number | null;
  readonly discovery_range: DiscoveryRange | null;
  readonly static_peers: readonly string[] | null;
}

/** `notes`: log lines about unusual but usable values. `problem`: why the values cannot be used. */
export type DiscoveryResult =
  | { readonly ok: true; readonly discovery: DiscoverySettings; readonly notes: readonly string[] }
  | { readonly ok: false; readonly problem: string };

const MAX_DOMAIN_ID = 232;
const RANGES: readonly DiscoveryRange[] = ['SUBNET', 'LOCALHOST', 'OFF', 'SYSTEM_DEFAULT'];
/** rmw's limit for an address. */
const MAX_PEER_LENGTH = 255;
const MAX_PEERS = 64;

/**
 * Determines domain, discovery range and peers. A configuration key overrides its environment variable; without both, ROS 2's default
 * applies. Variables are read as in rcl (init.c, domain_id.c, discovery_options.c, localhost.c), except that a domain id with trailing
 * characters is an error here, while rcl uses its leading digits.
 */
export function discoverySettings(config: DiscoveryConfig, environment: Readonly<Record<string, string | undefined>>): DiscoveryResult {
  const notes: string[] = [];
  const domainId = config.domain_id ?? parseDomainId(environment['ROS_DOMAIN_ID'] ?? '');
  if (domainId === null) {
    const given = JSON.stringify(environment['ROS_DOMAIN_ID']);
    const problem = `ROS_DOMAIN_ID is ${given}; set it to a whole number from 0 to ${MAX_DOMAIN_ID}, or set ros.domain_id`;
    return { ok: false, problem };
  }
  // In rcl the older variable overrides the newer ones, including the peers.
  const localhostOnly = config.discovery_range === null && (environment['ROS_LOCALHOST_ONLY'] ?? '').startsWith('1');
  const discoveryRange = config.discovery_range ?? (localhostOnly ? 'LOCALHOST' : rangeOf(environment, notes));
  const named = config.static_peers ?? (localhostOnly ? [] : peersOf(environment, notes));
  const usesPeers = discoveryRange === 'SUBNET' || discoveryRange === 'LOCALHOST';
  if (named.length > 0 && !usesPeers) notes.push(`static peers are not used, since the discovery range is ${discoveryRange}`);
  return { ok: true, discovery: { domainId, discoveryRange, staticPeers: usesPeers ? named : [] }, notes };
}

/** Like strtoul(3) with base 0: decimal, hexadecimal after 0x, octal after 0. Null: invalid or out of range. */
function parseDomainId(text: string): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return 0;
  const octal = /^0[0-7]+$/.test(trimmed);
  if (!octal && !/^(0|[1-9]\d*|0[xX][0-9a-fA-F]+)$/.test(trimmed)) return null;
  const value = octal ? Number.parseInt(trimmed, 8) : Number(trimmed);
  return value <= MAX_DOMAIN_ID ? value : null;
}

function rangeOf(environment: Readonly<Record<string, string | undefined>>, notes: string[]): DiscoveryRange {
  const given = environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] ?? '';
  if (given === '') return 'SUBNET';
  const range = RANGES.find((one) => one === given);
  if (range) return range;
  const text = JSON.stringify(given.slice(0, 60));
  notes.push(`ROS_AUTOMATIC_DISCOVERY_RANGE is ${text}, which is none of ${RANGES.join(', ')}; using LOCALHOST, as ROS 2 does`);
  return 'LOCALHOST';
}

function peersOf(environment: Readonly<Record<string, string | undefined>>, notes: string[]): string[] {
  const named = (environment['ROS_STATIC_PEERS'] ?? '')
    .split(';')
    .map((peer) => peer.trim())
    .filter((peer) => peer !== '');
  const short = named.filter((peer) => peer.length <= MAX_PEER_LENGTH);
  if (short.length < named.length)
    notes.push(`ROS_STATIC_PEERS has an address of more than ${MAX_PEER_LENGTH} characters, which is ignored`);
  if (short.length > MAX_PEERS) notes.push(`ROS_STATIC_PEERS has ${short.length} addresses; the first ${MAX_PEERS} are used`);
  return short.slice(0, MAX_PEERS);
}
