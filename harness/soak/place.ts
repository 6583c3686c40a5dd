import { once } from 'node:events';
import type { DiscoveryRange } from '../../src/ros/graph.ts';
import { Network, networkUnavailable } from '../../testkit/network/network.ts';

/** Where on the network a soak runs. */
export interface SoakPlace {
  readonly title: string;
  readonly domainId: number;
  readonly discoveryRange: DiscoveryRange;
  /** Options of the independent peer (testkit/dds/peers). */
  readonly peer: readonly string[];
}

export const INSIDE = '--inside';

/** A network of its own, which nobody else is in. */
export const OWN_NETWORK: SoakPlace = {
  title: 'a network namespace of its own',
  domainId: 0,
  discoveryRange: 'SUBNET',
  peer: ['--address', '127.0.0.1'],
};

/** Beyond it the ports of a domain would be among those that the kernel gives to anybody. */
const MOST_DOMAIN = 100;

/** Loopback of the machine, where a domain of its own keeps it apart from others. */
export function onLoopback(): SoakPlace {
  const domainId = 1 + Math.floor(Math.random() * MOST_DOMAIN);
  return {
    title: `loopback, ROS 2 domain ${domainId}`,
    domainId,
    discoveryRange: 'LOCALHOST',
    peer: ['--domain', String(domainId), '--address', '127.0.0.1', '--peer', '127.0.0.1', '--no-multicast'],
  };
}

/** Runs this program again inside a network of its own; its exit code, or null where there can be none. */
export async function runInside(argv: readonly string[]): Promise<number | null> {
  if (networkUnavailable() !== false) return null;
  const network = new Network();
  const host = network.host();
  // Making a namespace also takes care of being ended by a signal: at once, with all that is inside. Here that one writes its report first.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeAllListeners(signal);
  const child = host.spawn(process.execPath, [...process.execArgv, process.argv[1] as string, INSIDE, ...argv], {
    stdio: 'inherit',
    // Ctrl-C comes by way of this one, once.
    detached: true,
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  network.dispose();
  return code ?? 1;
}
