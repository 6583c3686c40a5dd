/**
 * Starts the embedded transport in a process of its own and controls it: a test makes it publish, reads what it received, and stops or
 * kills it. The other end is testkit/dds/graph-node-program.ts.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { DdsCaller, ShutdownCall, ShutdownProgress } from '../../src/core/shutdown/shutdown.ts';
import type { DiscoveryRange, RosDetails } from '../../src/ros/graph.ts';
import type { Host } from '../network/network.ts';
import { EventProcess, type ProcessEnd, type ToldEvent } from '../service/event-process.ts';
import { ROOT } from '../service/service.ts';

/** How a node takes part; what is not said is as a service on its own has it. */
export interface NodeOptions {
  readonly domainId?: number;
  readonly discoveryRange?: DiscoveryRange;
  readonly staticPeers?: readonly string[];
  /** Of its ROS nodes and topics. */
  readonly namespace?: string;
  /** `node_name` of its own statuses. */
  readonly localNode?: string;
  readonly gather?: boolean;
  /** How long others keep it without a datagram from it; as the service by default. */
  readonly leaseSeconds?: number;
  /** How long it waits before it answers a call of /safe_shutdown. */
  readonly answerAfterMs?: number;
  /** It answers calls only when `answerCalls` tells it to. */
  readonly holdsAnswers?: boolean;
}

/** What the node does when told; see testkit/dds/graph-node-program.ts. */
export type NodeCommand =
  | { readonly do: 'health'; readonly status: HealthStatus }
  | { readonly do: 'alert'; readonly alert: Alert }
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
  /** Says which stream of this node it is: `temperature` of its statuses. */
  readonly id?: number;
  readonly nodeName?: string;
}

/** What the node tells, by `event`. */
export interface NodeEvents {
  ready: object;
  /** What arrived from others. */
  health: { readonly status: HealthStatus };
  alert: { readonly alert: Alert };
  call: { readonly call: ShutdownCall; readonly caller: Partial<Pick<DdsCaller, 'address' | 'local'>> };
  log: { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };
  published: { readonly id: number; readonly number: number };
  details: RosDetails & { readonly rss_bytes: number; readonly heap_bytes: number; readonly cpu_seconds: number };
  failed: { readonly error: string };
}

export type NodeEvent<Kind extends keyof NodeEvents = keyof NodeEvents> = ToldEvent<NodeEvents, Kind>;

/** A process of its own in a host, with the embedded transport in it and nothing else. It ends when this process does. */
export class GraphNode extends EventProcess<NodeEvents> {
  private constructor(process: ChildProcess) {
    super(process, 'graph node', 120);
    // One that has ended takes no commands; that it has, `ended` tells.
    process.stdin?.on('error', () => {});
  }

  /** Resolves when it takes part in the graph. */
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

  tell(command: NodeCommand): void {
    this.process.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  publishHealth(status: HealthStatus): void {
    this.tell({ do: 'health', status });
  }

  publishAlert(alert: Alert): void {
    this.tell({ do: 'alert', alert });
  }

  publishShutdown(progress: ShutdownProgress): void {
    this.tell({ do: 'shutdown', progress });
  }

  /** Begins to publish; several streams may run at once. */
  stream(stream: NodeStream): void {
    this.tell({ do: 'stream', stream });
  }

  /** Ends all streams; the number of the last status of the first one. */
  async endStreams(): Promise<number> {
    this.tell({ do: 'end streams' });
    return this.lastPublished();
  }

  /** The number of the stream's last status so far; 0: none. Nothing that was published before the question is left out. */
  async lastPublished(stream = 0): Promise<number> {
    await this.details();
    return this.all('published').findLast(({ id }) => id === stream)?.number ?? 0;
  }

  /** Answers the calls that wait for it, of a node that holds its answers. */
  answerCalls(): void {
    this.tell({ do: 'answer calls' });
  }

  /** As they are now; `collect`: after a garbage collection, so that memory means what is in use. */
  async details({ collect = false } = {}): Promise<NodeEvent<'details'>> {
    const before = this.all('details').length;
    this.tell({ do: 'details', collect });
    const found = await this.waitForCount('details', before + 1);
    return found[before] as NodeEvent<'details'>;
  }

  /** Waits until the details are as wanted; throws with the last ones when they are not in time. */
  async detailsUntil(satisfied: (details: NodeEvent<'details'>) => boolean, seconds = 120): Promise<NodeEvent<'details'>> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const details = await this.details();
      if (satisfied(details)) return details;
      if (Date.now() > deadline) throw new Error(`not in ${seconds} s: ${satisfied}\n${JSON.stringify(details)}\n${this.account()}`);
      await new Promise((later) => setTimeout(later, 100));
    }
  }

  /** It takes its leave of the others and ends. */
  stop(): Promise<ProcessEnd> {
    if (!this.hasEnded) this.tell({ do: 'stop' });
    return this.ended;
  }

  /** It leaves without a word. */
  kill(): Promise<ProcessEnd> {
    if (!this.hasEnded) this.signal('SIGKILL');
    return this.ended;
  }
}
