import { createSocket, type Socket } from 'node:dgram';
import {
  allInterfaces,
  type Channel,
  type DatagramHandler,
  type Interface,
  type Network,
  usableInterfaces,
} from '../../src/rtps/net/network.ts';
import { MULTICAST_GROUP, ports } from '../../src/rtps/wire/protocol.ts';

function bind(port: number, reuseAddr: boolean): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type: 'udp4', reuseAddr, lookup: (address, _options, done) => done(null, address, 4) });
    socket.once('error', reject);
    socket.bind(port, '0.0.0.0', () => resolve(socket.removeListener('error', reject)));
  });
}

/**
 * The UDP of many participants in one process. Each has the two unicast sockets that it would have anywhere; the group has one
 * socket for all. What comes from `fellows`, the addresses of simulated robots, is dropped unread: robots that watch nobody have
 * nothing to say to each other, and hundreds that read each other's announcements would take the machine from what is measured.
 */
export class FleetNetwork {
  readonly #domain: number;
  readonly #fellows: ReadonlySet<string>;
  readonly #members = new Set<DatagramHandler>();
  #taken = 0;

  private constructor(domain: number, fellows: readonly string[]) {
    this.#domain = domain;
    this.#fellows = new Set(fellows);
  }

  static async open(domain: number, fellows: readonly string[]): Promise<FleetNetwork> {
    const network = new FleetNetwork(domain, fellows);
    const group = await bind(ports.metaMulticast(domain), true);
    for (const { address } of usableInterfaces(false, allInterfaces())) group.addMembership(MULTICAST_GROUP, address);
    group.on('message', (datagram, source) => {
      if (!network.isFellow(source.address)) for (const member of network.#members) member.onDatagram(datagram, source, true);
    });
    return network;
  }

  get domain(): number {
    return this.#domain;
  }

  isFellow(address: string): boolean {
    return this.#fellows.has(address);
  }

  /** A place for one more participant. */
  robot(): RobotNetwork {
    this.#taken += 1;
    return new RobotNetwork(this, this.#taken - 1, this.#members);
  }
}

/** One participant's part of it. */
export class RobotNetwork implements Network {
  readonly #fleet: FleetNetwork;
  readonly #index: number;
  readonly #members: Set<DatagramHandler>;
  readonly #own = allInterfaces();
  #handler: DatagramHandler | null = null;
  #sockets: Readonly<Record<Channel, Socket>> | null = null;

  constructor(fleet: FleetNetwork, index: number, members: Set<DatagramHandler>) {
    this.#fleet = fleet;
    this.#index = index;
    this.#members = members;
  }

  interfaces(): Interface[] {
    return usableInterfaces(false, this.#own);
  }

  isOwn(address: string): boolean {
    return this.#own.some((own) => own.address === address);
  }

  async open(domain: number, handler: DatagramHandler): Promise<Readonly<Record<Channel, number>>> {
    const bound = { meta: ports.metaUnicast(domain, this.#index), user: ports.userUnicast(domain, this.#index) };
    this.#sockets = { meta: await bind(bound.meta, false), user: await bind(bound.user, false) };
    this.#sockets.meta.setMulticastLoopback(false);
    for (const socket of Object.values(this.#sockets)) {
      socket.on('error', (error) => handler.onProblem('socket', { error: error.message }));
      socket.on('message', (datagram, source) => {
        if (!this.#fleet.isFellow(source.address)) handler.onDatagram(datagram, source, false);
      });
    }
    this.#handler = handler;
    this.#members.add(handler);
    return bound;
  }

  join(): void {}

  send(channel: Channel, datagram: Buffer, address: string, port: number): void {
    this.#sockets?.[channel].send(datagram, port, address, () => {});
  }

  multicast(datagram: Buffer, out: Interface): void {
    const socket = this.#sockets?.meta;
    socket?.setMulticastInterface(out.address);
    socket?.send(datagram, ports.metaMulticast(this.#fleet.domain), MULTICAST_GROUP, () => {});
  }

  /** Also how a robot vanishes: what it would say from now on, its leave too, goes nowhere. */
  close(): void {
    if (this.#handler) this.#members.delete(this.#handler);
    for (const socket of Object.values(this.#sockets ?? {})) socket.close();
    this.#sockets = null;
  }
}
