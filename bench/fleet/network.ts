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
 * The UDP sockets of many participants in one process. Each participant has its usual two unicast sockets; all share one multicast socket.
 * Datagrams from `robotAddresses` are dropped unread: robots that do not observe others exchange no data, and hundreds of robots that parse
 * each other's announcements would take the CPU that the measured appliance needs.
 */
export class FleetNetwork {
  readonly #domain: number;
  readonly #robotAddresses: ReadonlySet<string>;
  readonly #members = new Set<DatagramHandler>();
  #robots = 0;

  private constructor(domain: number, robotAddresses: readonly string[]) {
    this.#domain = domain;
    this.#robotAddresses = new Set(robotAddresses);
  }

  static async open(domain: number, robotAddresses: readonly string[]): Promise<FleetNetwork> {
    const network = new FleetNetwork(domain, robotAddresses);
    const group = await bind(ports.metaMulticast(domain), true);
    for (const { address } of usableInterfaces(false, allInterfaces())) group.addMembership(MULTICAST_GROUP, address);
    group.on('message', (datagram, source) => {
      if (!network.isRobot(source.address)) for (const member of network.#members) member.onDatagram(datagram, source, true);
    });
    return network;
  }

  get domain(): number {
    return this.#domain;
  }

  isRobot(address: string): boolean {
    return this.#robotAddresses.has(address);
  }

  /** Creates the network of one more participant. */
  robot(): RobotNetwork {
    this.#robots += 1;
    return new RobotNetwork(this, this.#robots - 1, this.#members);
  }
}

/** The sockets of one participant. */
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
        if (!this.#fleet.isRobot(source.address)) handler.onDatagram(datagram, source, false);
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

  /** Makes a robot vanish: nothing that it sends afterwards, including its leave message, reaches the network. */
  close(): void {
    if (this.#handler) this.#members.delete(this.#handler);
    for (const socket of Object.values(this.#sockets ?? {})) socket.close();
    this.#sockets = null;
  }
}
