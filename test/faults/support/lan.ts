/** A small network for the machine that faults are injected into. */
import type { LossyLink } from '../../../testkit/network/lossy-link.ts';
import { type Host, type Interface, Network, type Segment } from '../../../testkit/network/network.ts';

/** A network with the machine and a neighbour, which is where users of the machine are. */
export interface Lan {
  readonly network: Network;
  readonly segment: Segment;
  /** The machine's own host: address 10.77.1.1. */
  readonly machine: Host;
  readonly interface: Interface;
  /** Another computer, at 10.77.1.2. */
  readonly neighbour: Host;
  /** The link of the machine, if it can be degraded. */
  readonly link: LossyLink | null;
}

export async function makeLan(kind: 'good' | 'lossy'): Promise<Lan> {
  const network = new Network();
  try {
    const segment = network.segment();
    const [machine, neighbour] = [network.host(), network.host()];
    const lossy = kind === 'lossy' ? await segment.attachLossy(machine, { number: 1 }) : null;
    const attached = lossy ?? segment.attach(machine, { number: 1 });
    segment.attach(neighbour, { number: 2 });
    return { network, segment, machine, interface: attached, neighbour, link: lossy?.link ?? null };
  } catch (error) {
    network.dispose();
    throw error;
  }
}
