import { lookup } from 'node:dns';
import type { Log } from '../../core/ports.ts';
import type { GraphPlace } from '../graph.ts';

/** Whether only loopback is used: with LOCALHOST, unless there are static peers. */
export function isLoopbackOnly({ discoveryRange, staticPeers }: GraphPlace): boolean {
  return discoveryRange === 'LOCALHOST' && staticPeers.length === 0;
}

/**
 * The IPv4 addresses for discovery by unicast, with the rules of rmw_cyclonedds for each discovery range: the configured peers, and with
 * LOCALHOST this machine. A name that cannot be resolved is logged and skipped.
 */
export async function addressesOf({ discoveryRange, staticPeers }: GraphPlace, log: Log): Promise<string[]> {
  const own = discoveryRange === 'LOCALHOST' ? ['127.0.0.1'] : [];
  // ROS 2 ignores static peers with SYSTEM_DEFAULT.
  const peers = discoveryRange === 'SYSTEM_DEFAULT' ? [] : staticPeers;
  const found = await Promise.all(peers.map((peer) => resolved(peer, log)));
  return [...new Set([...own, ...found.filter((address) => address !== null)])];
}

function resolved(peer: string, log: Log): Promise<string | null> {
  return new Promise((done) => {
    lookup(peer, { family: 4 }, (error, address) => {
      if (error) log('warning', 'static peer not resolved', { peer, error: error.code });
      done(error ? null : address);
    });
  });
}
