/**
 * Test networks in network namespaces: hosts, segments (bridges) between them, and interfaces that go up and down. Needs root and
 * iproute2. Processes in them have no access to the interfaces of the machine.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { LossyLink } from './lossy-link.ts';
import { addNamespace, removeNamespace, run } from './namespaces.ts';

let unavailable: string | false | undefined;

/** The reason why no test networks can be created here; false if they can. For tap's `skip`. */
export function networkUnavailable(): string | false {
  unavailable ??= probe();
  return unavailable;
}

function probe(): string | false {
  if (process.getuid?.() !== 0) return 'needs root to create network namespaces';
  if (spawnSync('ip', ['-V']).error) return 'needs the Debian package iproute2';
  try {
    const network = new Network();
    try {
      network.segment().attach(network.host());
    } finally {
      network.dispose();
    }
    return false;
  } catch (error) {
    return `needs a kernel with network namespaces, veth and bridges: ${(error as Error).message.trim()}`;
  }
}

/** An isolated network: hosts, and the segments (bridges) that connect them. Needs root. */
export class Network {
  readonly #namespaces: string[] = [];
  #switchName: string | null = null;
  #segments = 0;

  /** A host with only a loopback interface, which carries multicast until the host is attached to a segment. */
  host(): Host {
    return new Host(this.#namespace(`host${this.#namespaces.length}`));
  }

  /** A bridge with the subnet 10.77.<number>.0/24, numbers from 1. `multicast`: whether it forwards multicast. */
  segment({ multicast = true } = {}): Segment {
    this.#switchName ??= this.#namespace('switch');
    this.#segments += 1;
    return new Segment(this.#switchName, this.#segments, multicast);
  }

  #namespace(what: string): string {
    const name = addNamespace(what);
    this.#namespaces.push(name);
    return name;
  }

  /** Kills every process in the network and removes it; idempotent. Networks that remain are removed when this process exits. */
  dispose(): void {
    for (const name of this.#namespaces.splice(0)) removeNamespace(name);
  }
}

/** A host: a network namespace. It shares files and processes with the real machine. */
export class Host {
  readonly name: string;
  readonly #interfaces: Interface[] = [];
  #interfaceCount = 0;

  constructor(name: string) {
    this.name = name;
    this.ip('link', 'set', 'lo', 'up', 'multicast', 'on');
    this.route();
  }

  /** Addresses of the attached interfaces that are up; 127.0.0.1 if none is attached. */
  get addresses(): readonly string[] {
    if (this.#interfaces.length === 0) return ['127.0.0.1'];
    return this.#interfaces.filter(({ isUp }) => isUp).map(({ address }) => address);
  }

  /** The arguments of `spawn` that run a program in this host, without an intermediate process. */
  command(program: string, args: readonly string[] = []): [program: string, args: string[]] {
    return ['ip', ['netns', 'exec', this.name, program, ...args]];
  }

  /** Runs a program to its end; returns its standard output. Throws with its output if it fails. */
  exec(program: string, ...args: string[]): string {
    return run(...this.command(program, args));
  }

  spawn(program: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
    return spawn(...this.command(program, args), options);
  }

  /** Runs iproute2's `ip` in this host. */
  ip(...args: string[]): string {
    return run('ip', ['-n', this.name, ...args]);
  }

  /** A name for the next interface: eth0, eth1, and so on, never reused. */
  nextInterface(): string {
    return `eth${this.#interfaceCount++}`;
  }

  /** Called by Segment.attach and Interface.remove. */
  attached(added: Interface | null, removed: Interface | null = null): void {
    if (removed) this.#interfaces.splice(this.#interfaces.indexOf(removed), 1);
    if (added) this.#interfaces.push(added);
    // As on any machine with a network, loopback then carries no multicast.
    this.ip('link', 'set', 'lo', 'multicast', this.#interfaces.length > 0 ? 'off' : 'on');
    this.route();
  }

  /** Sends multicast to the first interface that is up, unless a socket chooses another. */
  route(): void {
    const device = this.#interfaces.length > 0 ? this.#interfaces.find(({ isUp }) => isUp)?.name : 'lo';
    if (device) this.ip('route', 'replace', '239.0.0.0/8', 'dev', device);
  }
}

export interface AttachOptions {
  /** The last octet of the address; the next free one by default. */
  readonly number?: number;
}

/** A bridge, in a namespace that the segments of a network share. */
export class Segment {
  readonly #switchName: string;
  readonly #number: number;
  readonly #bridge: string;
  readonly #multicast: boolean;
  #ports = 0;

  constructor(switchName: string, number: number, multicast: boolean) {
    this.#switchName = switchName;
    this.#number = number;
    this.#multicast = multicast;
    this.#bridge = `br${number}`;
    // The bridge and the lossy links forward frames; the namespace itself must not send any.
    run('ip', ['netns', 'exec', switchName, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true']);
    // Without snooping, multicast is flooded to all ports from the first frame on.
    this.#ip('link', 'add', this.#bridge, 'type', 'bridge', 'mcast_snooping', '0');
    this.#ip('link', 'set', this.#bridge, 'up');
  }

  #ip(...args: string[]): string {
    return run('ip', ['-n', this.#switchName, ...args]);
  }

  address(number: number): string {
    return `10.77.${this.#number}.${number}`;
  }

  /** Adds an interface of the host to this segment, up and with an address. */
  attach(host: Host, options: AttachOptions = {}): Interface {
    const port = this.#port();
    return this.#connect(host, port, options, port);
  }

  /** Like attach, but over a lossy link, which forwards everything until faults are set. The seed determines which frames are affected. */
  async attachLossy(
    host: Host,
    options: AttachOptions & { readonly seed?: number } = {},
  ): Promise<Interface & { readonly link: LossyLink }> {
    const port = this.#port();
    const [near, inner] = [`n${port}`, `i${port}`];
    this.#ip('link', 'add', inner, 'type', 'veth', 'peer', 'name', port);
    this.#ip('link', 'set', port, 'master', this.#bridge, 'up');
    this.#ip('link', 'set', inner, 'up');
    const attached = this.#connect(host, near, options, null);
    const link = await LossyLink.start(this.#switchName, near, inner, options.seed ?? 1);
    return Object.assign(attached, { link });
  }

  #port(): string {
    this.#ports += 1;
    return `p${this.#number}x${this.#ports}`;
  }

  #connect(host: Host, switchEnd: string, options: AttachOptions, port: string | null): Interface {
    const name = host.nextInterface();
    host.ip('link', 'add', name, 'type', 'veth', 'peer', 'name', switchEnd, 'netns', this.#switchName);
    if (port) this.#ip('link', 'set', port, 'master', this.#bridge);
    if (port && !this.#multicast) this.#ip('link', 'set', port, 'type', 'bridge_slave', 'mcast_flood', 'off');
    this.#ip('link', 'set', switchEnd, 'up');
    return new Interface(host, name, this.address(options.number ?? this.#ports));
  }
}

/** An interface of a host in a segment. */
export class Interface {
  readonly name: string;
  readonly #host: Host;
  #address: string;
  #up = false;

  constructor(host: Host, name: string, address: string) {
    this.name = name;
    this.#host = host;
    this.#address = address;
    host.ip('address', 'add', `${address}/24`, 'dev', name);
    this.#host.attached(this);
    this.up();
  }

  get address(): string {
    return this.#address;
  }

  get isUp(): boolean {
    return this.#up;
  }

  /** Replaces the address, like a new DHCP lease: the old one is removed first. */
  setAddress(address: string): void {
    this.#host.ip('address', 'del', `${this.#address}/24`, 'dev', this.name);
    this.#address = address;
    this.#host.ip('address', 'add', `${address}/24`, 'dev', this.name);
    this.#host.route();
  }

  /** Sets the interface down: its address stays, its routes are removed. */
  down(): void {
    this.#host.ip('link', 'set', this.name, 'down');
    this.#up = false;
    this.#host.route();
  }

  up(): void {
    this.#host.ip('link', 'set', this.name, 'up');
    this.#up = true;
    this.#host.route();
  }

  /** Removes the interface, like unplugging a USB adapter. */
  remove(): void {
    this.#host.ip('link', 'del', this.name);
    this.#host.attached(null, this);
  }
}
