import { once } from 'node:events';
import { Network, networkUnavailable } from '../../testkit/network/network.ts';

/** The network that a soak runs in. */
export interface SoakNetwork {
  readonly title: string;
  readonly domainId: number;
  readonly discoveryRange: 'LOCALHOST' | 'SUBNET';
  /** Options of the independent subscriber (testkit/dds/peers). */
  readonly peer: readonly string[];
}

export const INSIDE = '--inside';

export const OWN_NETWORK: SoakNetwork = {
  title: 'a network namespace of its own',
  domainId: 0,
  discoveryRange: 'SUBNET',
  peer: ['--address', '127.0.0.1'],
};

/** The ports of higher domains are in the range that the kernel assigns to any program. */
const MAX_DOMAIN = 100;

/** Loopback, with a separate domain to isolate it from other ROS 2 programs on the machine. */
export function onLoopback(): SoakNetwork {
  const domainId = 1 + Math.floor(Math.random() * MAX_DOMAIN);
  return {
    title: `loopback, ROS 2 domain ${domainId}`,
    domainId,
    discoveryRange: 'LOCALHOST',
    peer: ['--domain', String(domainId), '--address', '127.0.0.1', '--peer', '127.0.0.1', '--no-multicast'],
  };
}

/** Runs this program again in a network namespace. Returns its exit code, or null if no namespace can be created. */
export async function runInOwnNetwork(argv: readonly string[]): Promise<number | null> {
  if (networkUnavailable() !== false) return null;
  const network = new Network();
  const host = network.host();
  // A Network ends at once on a signal, but the soak inside must write its report first.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeAllListeners(signal);
  const child = host.spawn(process.execPath, [...process.execArgv, process.argv[1] as string, INSIDE, ...argv], {
    stdio: 'inherit',
    // Ctrl-C is forwarded once, below.
    detached: true,
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  network.dispose();
  return code ?? 1;
}
