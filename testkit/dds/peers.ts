/**
 * Starts programs on Cyclone DDS and Fast DDS (testkit/dds/peers) in a host of a test network and reads the events that they print, to
 * test the embedded transport against the implementations that ROS 2 uses.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { type Host, networkUnavailable } from '../network/network.ts';
import { EventProcess, type EventRecord, type ProcessEnd } from '../service/event-process.ts';
import { build, buildUnavailable } from './native.ts';

/** The DDS implementations of the peers; both have the same options and events. */
export const VENDORS = ['cyclone', 'fastdds'] as const;
export type Vendor = (typeof VENDORS)[number];

export type PeerMode = 'subscribe' | 'publish' | 'call' | 'graph' | 'discovery';

/** The reason why peers cannot run here; false if they can. For tap's `skip`. */
export function peersUnavailable(): string | false {
  return networkUnavailable() || buildUnavailable('peers');
}

/** Guids and gids are lower-case hexadecimal; `null` if the other side left before it could be queried. */
interface Matched {
  readonly topic: string;
  /** Current number of matches. */
  readonly current: number;
  readonly peer: string | null;
}

interface Endpoint {
  readonly kind: 'reader' | 'writer';
  readonly guid: string;
  readonly participant: string;
  /** DDS names, such as rt/health_status and edge_health_interfaces::msg::dds_::HealthStatus_. */
  readonly topic: string;
  readonly type: string;
  readonly reliability: 'reliable' | 'best-effort';
  readonly durability: 'transient-local' | 'volatile';
  readonly user_data: string;
  /** Printed only by Fast DDS. */
  readonly locators?: readonly string[];
}

/** Events of the peers, by `event`. */
export interface PeerEvents {
  /** subscribe, graph, discovery: the reader exists; publish: the writer can be discovered. */
  reader: { readonly topic?: string; readonly guid: string };
  writer: { readonly topic: string; readonly guid: string };
  matched: Matched;
  unmatched: Matched;
  incompatible: { readonly topic: string; readonly policy: number };
  /** `data` has the fields of the message; numbers that JSON cannot represent are "NaN", "Infinity", "-Infinity". */
  sample: {
    readonly topic: string;
    readonly writer: string | null;
    readonly source_ms: number;
    readonly latency_ms: number;
    /** Sequence number of the writer; only from Fast DDS. */
    readonly sequence_number?: number;
    readonly data: Readonly<Record<string, unknown>>;
  };
  /** A writer left, or disposed of the instances that it wrote. */
  instance: { readonly topic: string; readonly writer: string | null; readonly state: 'disposed' | 'no_writers' };
  /** Samples that the reader detected as lost. */
  lost: { readonly topic: string; readonly total: number };
  /** A sample was late by the requested deadline; `total` counts every period without one. */
  deadline_missed: { readonly topic: string; readonly total: number };
  /** Numbers of matched writers that are alive, and of those that have let their lease expire. */
  liveliness: { readonly topic: string; readonly alive: number; readonly not_alive: number };
  written: { readonly topic: string; readonly number: number };
  /** call: the server was found, or was not found before the timeout. `service_id` is the id that a Cyclone DDS server announces. */
  service_matched: { readonly client: number; readonly match_ms: number; readonly guid: string; readonly service_id?: string };
  service_missing: { readonly client: number; readonly match_ms: number; readonly guid: string };
  reply: {
    readonly client: number;
    readonly request: number;
    /** Whether the reply belongs to a request of this client; false is an error. */
    readonly own: boolean;
    /** Whether the request already had a reply. */
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
    /** The following members are only from Fast DDS. */
    readonly changed?: boolean;
    readonly vendor?: string;
    readonly lease_seconds?: number;
    readonly name?: string;
    readonly metatraffic?: readonly string[];
    readonly default?: readonly string[];
  };
  /** `how` is only from Fast DDS. */
  participant_gone: { readonly guid: string; readonly how?: 'goodbye' | 'lease' };
  endpoint: Endpoint;
  endpoint_gone: { readonly kind: 'reader' | 'writer'; readonly guid: string };
}

export type PeerEvent<Kind extends keyof PeerEvents = keyof PeerEvents> = EventRecord<PeerEvents, Kind>;

/** A program on another DDS implementation, running in a host. See `peer-cyclone --help` for the options. */
export class Peer extends EventProcess<PeerEvents> {
  private constructor(process: ChildProcess, title: string) {
    super(process, title, 120);
  }

  /** Builds the peers if necessary and starts one on `addresses`; if that is empty, the implementation chooses the interfaces. */
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

  /** Sends a signal and waits for the end of the process. On SIGTERM it announces its leave; on SIGKILL it cannot. */
  kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProcessEnd> {
    if (!this.hasEnded) this.signal(signal);
    return this.ended;
  }
}
