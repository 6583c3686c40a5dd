/**
 * Starts programs on Cyclone DDS and Fast DDS (testkit/dds/peers) in a host of a test network, and reads the events that they print: the
 * implementations that ROS 2 uses judge ours.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { type Host, networkUnavailable } from '../network/network.ts';
import { EventProcess, type ProcessEnd, type ToldEvent } from '../service/event-process.ts';
import { build, buildUnavailable } from './native.ts';

/** The DDS implementations whose peers there are; both take the same options and tell the same events. */
export const VENDORS = ['cyclone', 'fastdds'] as const;
export type Vendor = (typeof VENDORS)[number];

export type PeerMode = 'subscribe' | 'publish' | 'call' | 'graph' | 'discovery';

/** Why peers cannot run here; false when they can. Made for tap's `skip`. */
export function peersUnavailable(): string | false {
  return networkUnavailable() || buildUnavailable('peers');
}

/** Guids and gids are lower-case hexadecimal; `null` where the other side had gone before it could be asked. */
interface Matched {
  readonly topic: string;
  /** How many matches there are now. */
  readonly current: number;
  readonly peer: string | null;
}

interface Endpoint {
  readonly kind: 'reader' | 'writer';
  readonly guid: string;
  readonly participant: string;
  /** As DDS names them: rt/health_status, edge_health_interfaces::msg::dds_::HealthStatus_. */
  readonly topic: string;
  readonly type: string;
  readonly reliability: 'reliable' | 'best-effort';
  readonly durability: 'transient-local' | 'volatile';
  readonly user_data: string;
  /** Fast DDS alone. */
  readonly locators?: readonly string[];
}

/** What the peers tell, by `event`. */
export interface PeerEvents {
  /** subscribe, graph, discovery: it is listening now; publish: it can be found now. */
  reader: { readonly topic?: string; readonly guid: string };
  writer: { readonly topic: string; readonly guid: string };
  matched: Matched;
  unmatched: Matched;
  incompatible: { readonly topic: string; readonly policy: number };
  /** `data` holds the fields of the message; numbers that JSON has not are "NaN", "Infinity", "-Infinity". */
  sample: {
    readonly topic: string;
    readonly writer: string | null;
    readonly source_ms: number;
    readonly latency_ms: number;
    /** Of the writer; Fast DDS alone. */
    readonly sequence_number?: number;
    readonly data: Readonly<Record<string, unknown>>;
  };
  /** A writer left, or disposed of what it wrote. */
  instance: { readonly topic: string; readonly writer: string | null; readonly state: 'disposed' | 'no_writers' };
  /** Samples that the reader knows it missed. */
  lost: { readonly topic: string; readonly total: number };
  written: { readonly topic: string; readonly number: number };
  /** call: the server was found, or not in time. `service_id` is what a Cyclone DDS server calls itself. */
  service_matched: { readonly client: number; readonly match_ms: number; readonly guid: string; readonly service_id?: string };
  service_missing: { readonly client: number; readonly match_ms: number; readonly guid: string };
  reply: {
    readonly client: number;
    readonly request: number;
    /** Whether it answers a request of this client; if not, it should not have come here. */
    readonly own: boolean;
    /** Whether that request had been answered before. */
    readonly repeated: boolean;
    readonly round_trip_ms: number;
    readonly data: { readonly success: boolean; readonly message: string };
  };
  timeout: { readonly client: number; readonly request: number };
  /** graph: one message of ros_discovery_info. */
  entities: {
    readonly writer: string | null;
    readonly gid: string;
    readonly nodes: readonly {
      readonly namespace: string;
      readonly name: string;
      readonly readers: readonly string[];
      readonly writers: readonly string[];
    }[];
  };
  participant: {
    readonly guid: string;
    readonly user_data: string;
    /** These by Fast DDS alone. */
    readonly changed?: boolean;
    readonly vendor?: string;
    readonly lease_seconds?: number;
    readonly name?: string;
    readonly metatraffic?: readonly string[];
    readonly default?: readonly string[];
  };
  /** `how` by Fast DDS alone. */
  participant_gone: { readonly guid: string; readonly how?: 'goodbye' | 'lease' };
  endpoint: Endpoint;
  endpoint_gone: { readonly kind: 'reader' | 'writer'; readonly guid: string };
}

export type PeerEvent<Kind extends keyof PeerEvents = keyof PeerEvents> = ToldEvent<PeerEvents, Kind>;

/** A program on a DDS implementation that is not ours, running in a host. See `peer-cyclone --help` for the options. */
export class Peer extends EventProcess<PeerEvents> {
  private constructor(process: ChildProcess, title: string) {
    super(process, title, 120);
  }

  /** Builds the peers if need be, and starts one on the host's addresses or on those given; on none: as the implementation chooses. */
  static async start(
    host: Host,
    vendor: Vendor,
    mode: PeerMode,
    options: readonly string[] = [],
    addresses: readonly string[] = host.addresses,
  ): Promise<Peer> {
    const program = join(await build('peers'), `peer-${vendor}`);
    const given = options.includes('--address') ? [] : addresses.flatMap((address) => ['--address', address]);
    const child = host.spawn(program, [mode, ...given, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    return new Peer(child, `peer-${vendor} ${mode} ${options.join(' ')}`);
  }

  /** Sends a signal and waits for the end: on SIGTERM it says goodbye to the others, on SIGKILL it leaves without a word. */
  kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProcessEnd> {
    if (!this.hasEnded) this.signal(signal);
    return this.ended;
  }
}
