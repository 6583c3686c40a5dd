import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { MULTICAST_GROUP, ports } from '../wire/protocol.ts';
import { type DatagramHandler, Intake, type Reading } from './intake.ts';

export type { DatagramHandler, Source } from './intake.ts';

/** An IPv4 address of this machine and the network it is in. */
export interface Interface {
  readonly name: string;
  readonly address: string;
  readonly netmask: string;
  readonly isLoopback: boolean;
}

/** Interfaces used; a machine with more has mostly container interfaces. */
const MAX_INTERFACES = 16;
/** 9.6.1.3: highest number of participants on one machine. */
const MAX_INDEX = 120;
const RECEIVE_BUFFER_OCTETS = 1024 * 1024;
/** Send queue of a blocked socket; beyond it datagrams are dropped. */
const SEND_QUEUE_OCTETS = 256 * 1024;
const LOOPBACK = '127.0.0.1';

/** A participant's two unicast sockets: for discovery and for samples. */
export type Channel = 'meta' | 'user';

/** The network operations of a participant, implemented over UDP and, for tests, in memory. */
export interface Network {
  /** Reads the current interfaces to be announced. */
  interfaces(): Interface[];
  /** Whether an address belongs to this machine, as of the last call of `interfaces`. */
  isOwn(address: string): boolean;
  /** Binds the ports of the domain. Rejects when none is free, leaving no socket open. */
  open(domain: number, handler: DatagramHandler): Promise<Readonly<Record<Channel, number>>>;
  /** Joins the multicast group on these interfaces, and leaves it on all others. */
  join(interfaces: readonly Interface[]): void;
  /**
   * `mayBeUnreachable`: the host may be unreachable. While the kernel resolves such an address, for seconds, it queues the datagrams, and a
   * full queue blocks the socket, so these datagrams are sent from a separate one.
   */
  send(channel: Channel, datagram: Buffer, address: string, port: number, mayBeUnreachable?: boolean): void;
  /** Sends to the multicast group from one interface. */
  multicast(datagram: Buffer, out: Interface): void;
  close(): void;
}

/** Every IPv4 address of the machine. */
export function allInterfaces(all: ReturnType<typeof networkInterfaces> = networkInterfaces()): Interface[] {
  return Object.entries(all).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family }) => family === 'IPv4')
      .map(({ address, netmask, internal }) => ({ name, address, netmask, isLoopback: internal })),
  );
}

/** The interfaces to use: all but loopback, or loopback alone if there is no other or `localhostOnly` is set. */
export function usableInterfaces(localhostOnly: boolean, found: readonly Interface[]): Interface[] {
  const outward = found.filter(({ isLoopback }) => !isLoopback).slice(0, MAX_INTERFACES);
  if (!localhostOnly && outward.length > 0) return outward;
  const loopback = found.find(({ isLoopback }) => isLoopback);
  return [loopback ?? { name: 'lo', address: LOOPBACK, netmask: '255.0.0.0', isLoopback: true }];
}

export function isInNetwork(address: string, { address: own, netmask }: Interface): boolean {
  const mask = toNumber(netmask);
  return (toNumber(address) & mask) === (toNumber(own) & mask);
}

/** Whether an address is a broadcast address of an interface's network (RFC 919). */
export function isBroadcast(address: string, own: Interface): boolean {
  const host = ~toNumber(own.netmask);
  // Networks of one or two addresses have no broadcast address (RFC 3021).
  if (host === 0 || host === 1 || !isInNetwork(address, own)) return false;
  const number = toNumber(address) & host;
  return number === 0 || number === host;
}

function toNumber(address: string): number {
  return address.split('.').reduce((number, octet) => (number << 8) | Number(octet), 0);
}

/** UDP over IPv4 (9.6). IPv6 is not supported. */
export class UdpNetwork implements Network {
  readonly #localhostOnly: boolean;
  readonly #readInterfaces: () => Interface[];
  readonly #joined = new Set<string>();
  /** As last read. */
  #all: readonly Interface[] = [];
  #own: ReadonlySet<string> = new Set();
  #wasReadable = true;
  #handler: DatagramHandler | null = null;
  readonly #intake = new Intake({
    onDatagram: (datagram, source, isGroup) => this.#handler?.onDatagram(datagram, source, isGroup),
    isFromProven: (datagram, source) => this.#handler?.isFromProven(datagram, source) ?? false,
    onDropped: (source) => this.#handler?.onDropped(source),
  });
  /** All sockets bound since `open`, so that `close` also closes those of an `open` that failed. */
  readonly #bound: Socket[] = [];
  #group: Socket | null = null;
  #sockets: Readonly<Record<Channel, Socket>> | null = null;
  /** Socket for hosts that may be unreachable. */
  #unreachable: Socket | null = null;

  constructor(localhostOnly: boolean, readInterfaces: () => Interface[] = allInterfaces) {
    this.#localhostOnly = localhostOnly;
    this.#readInterfaces = readInterfaces;
  }

  interfaces(): Interface[] {
    const problem = attempt(() => {
      this.#all = this.#readInterfaces();
    });
    // Reading them needs a netlink socket, which fails when no file descriptor is free.
    if (problem && this.#wasReadable) {
      setImmediate(() => this.#handler?.onProblem('cannot read the network interfaces', { error: problem.message }));
    }
    this.#wasReadable = problem === null;
    this.#own = new Set(this.#all.map(({ address }) => address));
    return usableInterfaces(this.#localhostOnly, this.#all);
  }

  isOwn(address: string): boolean {
    return address.startsWith('127.') || this.#own.has(address);
  }

  async open(domain: number, handler: DatagramHandler): Promise<Readonly<Record<Channel, number>>> {
    this.#handler = handler;
    try {
      // All participants of the machine share the group's port.
      this.#group = await this.#bind(ports.metaMulticast(domain), true, true);
      const bound = await this.#bindUnicast(domain);
      this.#sockets = bound.sockets;
      this.#unreachable = await this.#bind(0, false, false);
      for (const socket of [this.#group, bound.sockets.meta, bound.sockets.user]) {
        const reading = readingOf(socket);
        if (reading) this.#intake.addReading(reading);
      }
      return bound.ports;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  join(interfaces: readonly Interface[]): void {
    for (const key of this.#joined) {
      if (interfaces.some((entry) => keyOf(entry) === key)) continue;
      this.#joined.delete(key);
      // Fails if the interface is gone, and the membership with it.
      attempt(() => this.#group?.dropMembership(MULTICAST_GROUP, key.slice(key.indexOf(' ') + 1)));
    }
    for (const entry of interfaces) {
      // Joined again on known interfaces, because one that was removed and returned between two reads has lost its membership.
      const problem = attempt(() => this.#group?.addMembership(MULTICAST_GROUP, entry.address));
      const isNew = !this.#joined.has(keyOf(entry));
      this.#joined.add(keyOf(entry));
      if (problem && problem.code !== 'EADDRINUSE' && isNew) {
        this.#handler?.onProblem('cannot join the multicast group', {
          interface: entry.name,
          address: entry.address,
          error: problem.code,
        });
      }
    }
  }

  send(channel: Channel, datagram: Buffer, address: string, port: number, mayBeUnreachable?: boolean): void {
    const socket = mayBeUnreachable ? this.#unreachable : this.#sockets?.[channel];
    if (!socket || socket.getSendQueueSize() > SEND_QUEUE_OCTETS) return;
    socket.send(datagram, port, address, (error) => {
      if (error) this.#handler?.onProblem('cannot send', { to: `${address}:${port}`, error: (error as NodeJS.ErrnoException).code });
    });
  }

  multicast(datagram: Buffer, out: Interface): void {
    const socket = this.#sockets?.meta;
    if (!socket) return;
    // Fails if the interface was removed since it was last read.
    const problem = attempt(() => socket.setMulticastInterface(out.address));
    if (problem) return;
    socket.send(datagram, this.#groupPort(), MULTICAST_GROUP, (error) => {
      if (error)
        this.#handler?.onProblem('cannot send to the multicast group', {
          interface: out.name,
          error: (error as NodeJS.ErrnoException).code,
        });
    });
  }

  close(): void {
    this.#intake.close();
    for (const socket of this.#bound.splice(0)) attempt(() => socket.close()); // Fails for those that are closed.
    this.#group = null;
    this.#sockets = null;
    this.#unreachable = null;
    this.#joined.clear();
  }

  #groupPort(): number {
    return this.#group?.address().port ?? 0;
  }

  /** Binds the two ports of the first free participant index: for discovery and for samples. */
  async #bindUnicast(domain: number): Promise<{ sockets: Record<Channel, Socket>; ports: Record<Channel, number> }> {
    for (let index = 0; index < MAX_INDEX && ports.userUnicast(domain, index) < 65536; index += 1) {
      const meta = await this.#bindIfFree(ports.metaUnicast(domain, index));
      if (!meta) continue;
      const user = await this.#bindIfFree(ports.userUnicast(domain, index));
      if (user) {
        meta.setMulticastTTL(1);
        meta.setMulticastLoopback(true);
        return { sockets: { meta, user }, ports: { meta: ports.metaUnicast(domain, index), user: ports.userUnicast(domain, index) } };
      }
      meta.close();
    }
    throw new Error(`no free port for another participant in domain ${domain}`);
  }

  async #bindIfFree(port: number): Promise<Socket | null> {
    try {
      return await this.#bind(port, false, false);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
      throw error;
    }
  }

  #bind(port: number, reuseAddr: boolean, isGroup: boolean): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = createSocket({
        type: 'udp4',
        reuseAddr,
        recvBufferSize: RECEIVE_BUFFER_OCTETS,
        // Only addresses are used, never names; the default lookup would delay each send by a turn of the event loop.
        lookup: (address, _options, done) => done(null, address, 4),
      });
      const fail = (error: NodeJS.ErrnoException): void => {
        socket.close();
        const isHeld = isGroup && error.code === 'EADDRINUSE';
        reject(isHeld ? new Error(`UDP port ${port} is held by a program that does not share it; stop it, or use another domain`) : error);
      };
      socket.once('error', fail);
      socket.on('message', (datagram, source) => {
        // Linux delivers the group's datagrams of every interface on which any program has joined it (IP_MULTICAST_ALL).
        if (!this.#localhostOnly || this.isOwn(source.address)) this.#intake.take(datagram, source, isGroup);
      });
      // The kernel delivers nothing else to a socket that is bound to the group.
      const address = isGroup ? MULTICAST_GROUP : this.#localhostOnly ? LOOPBACK : '0.0.0.0';
      socket.bind(port, address, () => {
        this.#bound.push(socket);
        socket.removeListener('error', fail);
        socket.on('error', (error: NodeJS.ErrnoException) => this.#handler?.onProblem('socket error', { port, error: error.code }));
        resolve(socket);
      });
    });
  }
}

function keyOf({ name, address }: Interface): string {
  return `${name} ${address}`;
}

/** The socket's handle, which Node keeps private; null: not found, then each datagram is read when it arrives. */
export function readingOf(socket: Socket): Reading | null {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol');
  const handle = symbol && (socket as unknown as Record<symbol, { handle?: Partial<Reading> }>)[symbol]?.handle;
  return handle?.recvStart && handle.recvStop ? (handle as Reading) : null;
}

/** Runs the action; returns its error or null. */
function attempt(action: () => void): NodeJS.ErrnoException | null {
  try {
    action();
    return null;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}
