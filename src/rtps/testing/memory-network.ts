import type { Channel, DatagramHandler, Interface, Network } from '../net/network.ts';
import { MULTICAST_GROUP, ports } from '../wire/protocol.ts';

/** Default source port of datagrams. */
const SOURCE_PORT = 7411;

/** A datagram in transit. */
export interface Flight {
  readonly datagram: Buffer;
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly isMulticast: boolean;
}

export interface WireOptions {
  /** Delay of the next copy in milliseconds; null: it is lost. Called once per copy. */
  readonly delayMs?: () => number | null;
  /** Copies of the next datagram. */
  readonly copies?: () => number;
}

/** A network in memory: hosts are in segments and reach hosts of the same segments. Each datagram takes a timer. */
export class Wire {
  options: WireOptions;
  readonly networks = new Set<MemoryNetwork>();
  /** Called with every datagram sent, including those that are lost. */
  onFlight: (flight: Flight) => void = () => {};

  constructor(options: WireOptions = {}) {
    this.options = options;
  }

  /** Adds a machine with these addresses, by segment. */
  host(addresses: Readonly<Record<string, string>>): MemoryNetwork {
    return new MemoryNetwork(this, addresses);
  }

  /** Delivers a datagram to its receivers. */
  carry(flight: Flight, receivers: (network: MemoryNetwork) => ((datagram: Buffer, from: string) => void) | null): void {
    const { datagram, from } = flight;
    this.onFlight(flight);
    for (const network of this.networks) {
      const receive = receivers(network);
      if (!receive) continue;
      for (let copies = this.options.copies?.() ?? 1; copies > 0; copies -= 1) {
        const delay = this.options.delayMs ? this.options.delayMs() : 1;
        if (delay !== null) setTimeout(() => receive(Buffer.from(datagram), from), delay);
      }
    }
  }
}

/** The network of one participant. */
export class MemoryNetwork implements Network {
  readonly #wire: Wire;
  /** Address by segment. */
  #addresses: Readonly<Record<string, string>>;
  #handler: DatagramHandler | null = null;
  #ports: Readonly<Record<Channel, number>> = { meta: 0, user: 0 };
  #groupPort = 0;
  #joined = new Set<string>();
  /** It neither sends nor receives, like a stopped process with full socket buffers. */
  isFrozen = false;

  constructor(wire: Wire, addresses: Readonly<Record<string, string>>) {
    this.#wire = wire;
    this.#addresses = addresses;
  }

  get isOpen(): boolean {
    return this.#handler !== null;
  }

  /** Changes the interfaces, which are detected when they are read next. */
  set addresses(addresses: Readonly<Record<string, string>>) {
    this.#addresses = addresses;
  }

  interfaces(): Interface[] {
    return Object.entries(this.#addresses).map(([name, address]) => ({ name, address, netmask: '255.255.255.0', isLoopback: false }));
  }

  isOwn(address: string): boolean {
    return address.startsWith('127.') || Object.values(this.#addresses).includes(address);
  }

  open(domain: number, handler: DatagramHandler): Promise<Readonly<Record<Channel, number>>> {
    const taken = [...this.#wire.networks].filter((other) => Object.values(this.#addresses).some((address) => other.isOwn(address))).length;
    this.#ports = { meta: ports.metaUnicast(domain, taken), user: ports.userUnicast(domain, taken) };
    this.#groupPort = ports.metaMulticast(domain);
    this.#handler = handler;
    this.#wire.networks.add(this);
    return Promise.resolve(this.#ports);
  }

  join(interfaces: readonly Interface[]): void {
    this.#joined = new Set(interfaces.map(({ name }) => name));
  }

  send(_channel: Channel, datagram: Buffer, address: string, port: number): void {
    if (this.isFrozen) return;
    const from = this.#sourceTowards(address);
    const flight = { datagram, from: from ?? this.#anyAddress(), to: address, port, isMulticast: false };
    // Without a common segment the datagram goes to the default route and is lost.
    this.#wire.carry(flight, (other) => (from === null ? null : other.receiverAt(address, port)));
  }

  multicast(datagram: Buffer, out: Interface): void {
    const from = this.#addresses[out.name];
    if (from === undefined || this.isFrozen) return;
    const flight = { datagram, from, to: MULTICAST_GROUP, port: this.#groupPort, isMulticast: true };
    this.#wire.carry(flight, (other) => other.receiverOfGroup(out.name, this.#groupPort));
  }

  close(): void {
    this.#handler = null;
    this.#wire.networks.delete(this);
  }

  /** The channel of an address and port of this host; null: the port is closed. */
  receiverAt(address: string, port: number): ((datagram: Buffer, from: string) => void) | null {
    if (!Object.values(this.#addresses).includes(address) || (port !== this.#ports.meta && port !== this.#ports.user)) return null;
    return (datagram, from) => this.inject(datagram, from, false);
  }

  receiverOfGroup(segment: string, port: number): ((datagram: Buffer, from: string) => void) | null {
    if (this.#addresses[segment] === undefined || !this.#joined.has(segment) || port !== this.#groupPort) return null;
    return (datagram, from) => this.inject(datagram, from, true);
  }

  /** Delivers a datagram immediately. */
  inject(datagram: Buffer, from: string, viaMulticast: boolean, port = SOURCE_PORT): void {
    if (!this.isFrozen) this.#handler?.onDatagram(datagram, { address: from, port }, viaMulticast);
  }

  #anyAddress(): string {
    return Object.values(this.#addresses)[0] ?? '127.0.0.1';
  }

  /** The own address in the segment of another; null: no common segment. */
  #sourceTowards(address: string): string | null {
    const network = (of: string): string => of.split('.').slice(0, 3).join('.');
    return Object.values(this.#addresses).find((own) => network(own) === network(address)) ?? null;
  }
}
