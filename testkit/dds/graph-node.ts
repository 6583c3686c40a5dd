/**
 * Starts the embedded transport in a separate process (graph-node-program.ts) and controls it: a test makes it publish, reads the
 * messages that it received, and stops or kills it.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { DdsCaller, ShutdownCall, ShutdownProgress } from '../../src/core/shutdown/shutdown.ts';
import type { DiscoveryRange, RosDetails } from '../../src/ros/graph.ts';
import type { Host } from '../network/network.ts';
import { EventProcess, type EventRecord, type ProcessEnd } from '../service/event-process.ts';
import { ROOT } from '../service/service.ts';

/** Options of a node; the defaults are those of a service. */
export interface NodeOptions {
  readonly domainId?: number;
  readonly discoveryRange?: DiscoveryRange;
  readonly staticPeers?: readonly string[];
  /** Namespace of its ROS nodes and topics. */
  readonly namespace?: string;
  /** `node_name` of its own statuses. */
  readonly localNode?: string;
  /** Whether it receives statuses and alerts of others; true by default. */
  readonly observe?: boolean;
  /** Period of the statuses, which decides the deadline and the lease that it offers; 1 by default. */
  readonly publishSeconds?: number;
  /** Participant lease that it announces; the default is that of the service. */
  readonly leaseSeconds?: number;
  /** Delay before the reply to a call of /safe_shutdown. */
  readonly answerAfterMs?: number;
  /** Whether it delays replies until `answerCalls`. */
  readonly holdsAnswers?: boolean;
}

/** Commands of the node; see graph-node-program.ts. */
export type NodeCommand =
  | { readonly do: 'health'; readonly status: HealthStatus }
  | { readonly do: 'alert'; readonly alert: Alert }
  | { readonly do: 'open alerts'; readonly alerts: readonly Alert[]; readonly timestamp: string }
  | { readonly do: 'shutdown'; readonly progress: ShutdownProgress }
  | { readonly do: 'stream'; readonly stream: NodeStream }
  | { readonly do: 'end streams' }
  | { readonly do: 'answer calls' }
  | { readonly do: 'details'; readonly collect: boolean }
  | { readonly do: 'stop' };

/** Health statuses whose `cpu_percent` counts from 1. */
export interface NodeStream {
  readonly hz: number;
  readonly count: number;
  /** Identifies the stream: `temperature` of its statuses. */
  readonly id?: number;
  readonly nodeName?: string;
}

/** Events of the node, by `event`. */
export interface NodeEvents {
  ready: object;
  /** A message received from another node. */
  health: { readonly status: HealthStatus };
  alert: { readonly alert: Alert };
  call: { readonly call: ShutdownCall; readonly caller: Partial<Pick<DdsCaller, 'address' | 'local'>> };
  log: { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };
  published: { readonly id: number; readonly number: number };
  details: RosDetails & { readonly rss_bytes: number; readonly heap_bytes: number; readonly cpu_seconds: number };
  failed: { readonly error: string };
}

export type NodeEvent<Kind extends keyof NodeEvents = keyof NodeEvents> = EventRecord<NodeEvents, Kind>;

/** A process in a host that contains only the embedded transport. It ends with this process. */
export class GraphNode extends EventProcess<NodeEvents> {
  private constructor(process: ChildProcess) {
    super(process, 'graph node', 120);
    // Ignores write errors after the end of the process, which `ended` reports.
    process.stdin?.on('error', () => {});
  }

  /** Resolves when it has joined the graph. */
  static async start(host: Pick<Host, 'spawn'>, options: NodeOptions = {}): Promise<GraphNode> {
    const program = join(ROOT, 'testkit/dds/graph-node-program.ts');
    const child = host.spawn(process.execPath, ['--expose-gc', program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const node = new GraphNode(child);
    await node.waitFor('ready');
    return node;
  }

  send(command: NodeCommand): void {
    this.process.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  publishHealth(status: HealthStatus): void {
    this.send({ do: 'health', status });
  }

  publishAlert(alert: Alert): void {
    this.send({ do: 'alert', alert });
  }

  publishOpenAlerts(alerts: readonly Alert[], timestamp: string): void {
    this.send({ do: 'open alerts', alerts, timestamp });
  }

  publishShutdown(progress: ShutdownProgress): void {
    this.send({ do: 'shutdown', progress });
  }

  /** Starts a stream; several may run at once. */
  stream(stream: NodeStream): void {
    this.send({ do: 'stream', stream });
  }

  /** Ends all streams; returns the number of the last status of the first stream. */
  async endStreams(): Promise<number> {
    this.send({ do: 'end streams' });
    return this.lastPublished();
  }

  /** The number of the last published status of the stream, or 0 if there is none. Includes every status published before the call. */
  async lastPublished(stream = 0): Promise<number> {
    await this.details();
    return this.all('published').findLast(({ id }) => id === stream)?.number ?? 0;
  }

  /** Sends the delayed replies of a node with `holdsAnswers`. */
  answerCalls(): void {
    this.send({ do: 'answer calls' });
  }

  /** Current details; `collect`: after a garbage collection, so that the memory figures exclude garbage. */
  async details({ collect = false } = {}): Promise<NodeEvent<'details'>> {
    const before = this.all('details').length;
    this.send({ do: 'details', collect });
    const found = await this.waitForCount('details', before + 1);
    return found[before] as NodeEvent<'details'>;
  }

  /** Polls until the details satisfy the condition; throws with the last ones after the timeout. */
  async detailsUntil(satisfied: (details: NodeEvent<'details'>) => boolean, seconds = 120): Promise<NodeEvent<'details'>> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const details = await this.details();
      if (satisfied(details)) return details;
      if (Date.now() > deadline)
        throw new Error(`timeout after ${seconds} s: ${satisfied}\n${JSON.stringify(details)}\n${this.describe()}`);
      await new Promise((later) => setTimeout(later, 100));
    }
  }

  /** Stops the process, which announces its leave to the other participants. */
  stop(): Promise<ProcessEnd> {
    if (!this.hasEnded) this.send({ do: 'stop' });
    return this.ended;
  }

  /** Kills the process, which cannot announce its leave. */
  kill(): Promise<ProcessEnd> {
    if (!this.hasEnded) this.signal('SIGKILL');
    return this.ended;
  }
}
