/**
 * A process with only a transport: publishes a health status once per second or not at all, and on SIGUSR2, if configured, a stream at a
 * constant rate. `cpu_percent` is the number of the status, from 1 in the measured stream; `memory_percent` is the wall clock in
 * milliseconds, with a resolution of microseconds, right before publishing.
 *
 * It is bundled and gets the Node options of the service. It must load nothing beyond the transport: no process.stdin or
 * process.stdout, no readline.
 */
import { writeSync } from 'node:fs';
import type { GraphOptions, RosTransport } from '../../src/ros/graph.ts';
import { graphNames } from '../../src/ros/names.ts';
import type { Prepared } from '../../src/ros/rclnodejs/prepared.ts';

export interface PublisherOptions {
  /** `nothing`: a timer without a transport; `one node`: rclnodejs with a single node, `spin(node, 500)`. */
  readonly transport: 'embedded' | 'rclnodejs' | 'one node' | 'nothing';
  readonly domainId: number;
  /** Used by the two variants with rclnodejs. */
  readonly prepared: Prepared | null;
  /** Whether to publish once a second until the stream starts. */
  readonly publishes: boolean;
  readonly stream: PublisherStream | null;
}

export interface PublisherStream {
  readonly hertz: number;
  /** Number of statuses before the measured ones, numbered up to 0. */
  readonly warmUp: number;
  readonly count: number;
}

/** Each event is printed as one line of JSON. */
export type PublisherEvent =
  | { readonly event: 'ready' }
  /**
   * The last status of the stream has been published. `clockError`: milliseconds between the time stamps and the wall clock at that moment.
   */
  | { readonly event: 'streamed'; readonly seconds: number; readonly cpuSeconds: number; readonly clockError: number };

const options = JSON.parse(process.argv[2] as string) as PublisherOptions;

const GRAPH: GraphOptions = {
  discovery: { domainId: options.domainId, discoveryRange: 'SUBNET', staticPeers: [] },
  names: graphNames({ node_name: 'health_monitor', namespace: null }, []),
  listener: {
    onHealthStatus: () => {},
    onAlert: () => {},
    onSafeShutdown: async () => ({ success: false, message: 'this is a benchmark' }),
  },
  localNode: 'health_monitor',
  observe: 'always',
  parameters: () => [],
  publishSeconds: 1,
  diagnostics: () => {
    throw new Error('unexpected subscriber of /diagnostics');
  },
  log: (level, message, fields) => void writeSync(2, `${level}: ${message} ${JSON.stringify(fields ?? {})}\n`),
  monotonicSeconds: () => performance.now() / 1000,
};

function emit(event: PublisherEvent): void {
  writeSync(1, `${JSON.stringify(event)}\n`);
}

/** Offset from performance.now() to the wall clock, read when Date.now() changes; the largest of five readings is the most precise. */
function wallClockOffset(): number {
  let best = Number.NEGATIVE_INFINITY;
  for (let n = 0; n < 5; n += 1) {
    const before = Date.now();
    while (Date.now() === before);
    best = Math.max(best, Date.now() - performance.now());
  }
  return best;
}

async function createTransport({ transport, prepared }: PublisherOptions): Promise<Pick<RosTransport, 'start' | 'publishHealth'>> {
  if (transport === 'nothing') return { start: async () => {}, publishHealth: () => {} };
  if (transport === 'embedded') {
    const { EmbeddedTransport } = await import('../../src/ros/embedded/transport.ts');
    return new EmbeddedTransport({ ...GRAPH, wallMilliseconds: () => Date.now() });
  }
  if (prepared === null) throw new Error('rclnodejs is not prepared');
  const { RclnodejsTransport } = await import('../../src/ros/rclnodejs/transport.ts');
  if (transport === 'rclnodejs') return new RclnodejsTransport({ ...GRAPH, prepared, enclave: null, shutdownServer: null });
  return { start: () => spinOneNode(prepared), publishHealth: () => {} };
}

/** The baseline: an idle executor with one node, which has a publisher and a service. */
async function spinOneNode(prepared: Prepared): Promise<void> {
  const { loadRclnodejs, qosOf, rawType } = await import('../../src/ros/rclnodejs/library.ts');
  const { applyVariables, discoveryVariables } = await import('../../src/ros/rclnodejs/ros-variables.ts');
  const { HEALTH_STATUS, SAFE_SHUTDOWN } = await import('../../src/ros/interfaces.generated.ts');
  applyVariables(process.env, discoveryVariables(prepared.distro, GRAPH.discovery));
  const library = loadRclnodejs(prepared.folder);
  const context = new library.Context();
  await library.init(context, ['--ros-args', '--disable-external-lib-logs']);
  const bare = { startParameterServices: false, startTypeDescriptionService: false, enableRosout: false };
  const node = new library.Node('health_monitor', '/', context, bare, [], false);
  node.createPublisher(rawType(HEALTH_STATUS.rosName), '/health_status', { qos: qosOf(library, 'transient local', 10) });
  const answer = { success: false, message: 'this is a benchmark' };
  node.createService(SAFE_SHUTDOWN.rosName, '/safe_shutdown', { qos: library.QoS.profileServicesDefault }, async () => answer);
  node.spin(500);
}

let offset = wallClockOffset();

/** Follows a clock that is being slewed: the true time is between Date.now(), which is truncated to milliseconds, and 1 ms more. */
function followWallClock(): void {
  const now = performance.now();
  const least = Date.now() - now;
  offset = Math.min(Math.max(offset, least), least + 1);
}

function publish(transport: Pick<RosTransport, 'publishHealth'>, number: number): void {
  const status = {
    cpu_percent: number,
    memory_percent: offset + performance.now(),
    disk_percent: 41.5,
    temperature: 55.25,
    status: 'OK',
    node_name: 'health_monitor',
    timestamp: new Date().toISOString(),
  } as const;
  transport.publishHealth(status);
}

/** Publishes on a fixed grid: statuses delayed by a late timer are sent at once. */
function stream(transport: Pick<RosTransport, 'publishHealth'>, { hertz, warmUp, count }: PublisherStream): void {
  const begun = performance.now();
  let sent = 0;
  let cpu = process.cpuUsage();
  let since = begun;
  const publishDue = (): void => {
    while (sent < warmUp + count && begun + (sent * 1000) / hertz <= performance.now()) {
      if (sent === warmUp) {
        cpu = process.cpuUsage();
        since = performance.now();
      }
      sent += 1;
      publish(transport, sent - warmUp);
    }
    if (sent < warmUp + count) {
      setTimeout(publishDue, begun + (sent * 1000) / hertz - performance.now());
      return;
    }
    const seconds = (performance.now() - since) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    emit({ event: 'streamed', seconds, cpuSeconds: (user + system) / 1e6, clockError: offset - wallClockOffset() });
  };
  publishDue();
}

async function main(): Promise<void> {
  const transport = await createTransport(options);
  await transport.start();
  let published = -1_000_000;
  const timer = setInterval(() => {
    if (!options.publishes) return;
    publish(transport, published++);
    followWallClock();
  }, 1000);
  if (options.stream) {
    const streamOptions = options.stream;
    process.once('SIGUSR2', () => {
      clearInterval(timer);
      offset = wallClockOffset();
      stream(transport, streamOptions);
    });
  }
  emit({ event: 'ready' });
}

main().catch((error: Error) => {
  writeSync(2, `${error.stack}\n`);
  process.exit(1);
});
