/**
 * The embedded transport in a separate process, controlled by graph-node.ts: reads commands as lines of JSON from standard input,
 * prints events as lines of JSON on standard output, and ends when its input closes.
 */
import { createInterface } from 'node:readline';
import { EmbeddedTransport } from '../../src/ros/embedded/transport.ts';
import { nodePath } from '../../src/ros/names.ts';
import { CONTEXT } from './contents.ts';
import type { NodeCommand, NodeEvents, NodeOptions, NodeStream } from './graph-node.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as NodeOptions;
const namespace = options.namespace ?? '/';
const under = (name: string): string => nodePath(namespace, name);

function emit<Kind extends keyof NodeEvents>(event: Kind, what: NodeEvents[Kind]): void {
  process.stdout.write(`${JSON.stringify({ event, wall_ms: Date.now(), ...what })}\n`);
}

const heldAnswers: (() => void)[] = [];
let streamTimers: NodeJS.Timeout[] = [];

const transport = new EmbeddedTransport({
  discovery: {
    domainId: options.domainId ?? 0,
    discoveryRange: options.discoveryRange ?? 'SUBNET',
    staticPeers: options.staticPeers ?? [],
  },
  names: {
    namespace,
    nodes: {
      healthMonitor: 'health_monitor',
      thresholdMonitor: 'threshold_monitor',
      alertPublisher: 'alert_publisher',
      safeShutdown: 'safe_shutdown',
    },
    topics: {
      healthStatus: under('health_status'),
      alerts: under('alerts'),
      openAlerts: under('open_alerts'),
      shutdownStatus: under('shutdown_status'),
      diagnostics: '/diagnostics',
    },
    services: { safeShutdown: under('safe_shutdown'), ownSafeShutdown: under('health_monitor/safe_shutdown') },
  },
  listener: {
    onHealthStatus: (status) => emit('health', { status }),
    onAlert: (alert) => emit('alert', { alert }),
    onSafeShutdown: async (call, { dds }) => {
      if (dds?.isNew() === false) return null;
      emit('call', { call, caller: dds ? { address: dds.address, local: dds.local } : {} });
      if (options.holdsAnswers) await new Promise<void>((answer) => heldAnswers.push(answer));
      if (options.answerAfterMs) await new Promise((later) => setTimeout(later, options.answerAfterMs));
      // The reply names the caller, so that a misrouted reply can be detected.
      return { success: call.timeout > 0, message: `${call.reason} for ${call.requested_by}` };
    },
  },
  localNode: options.localNode ?? 'health_monitor',
  observe: (options.observe ?? true) ? 'always' : 'never',
  publishSeconds: options.publishSeconds ?? 1,
  ...(options.leaseSeconds === undefined ? {} : { leaseSeconds: options.leaseSeconds }),
  parameters: () => [],
  diagnostics: () => CONTEXT,
  log: (level, message, fields = {}) => emit('log', { level, message, fields }),
  monotonicSeconds: () => Number(process.hrtime.bigint()) / 1e9,
  wallMilliseconds: () => Date.now(),
});

/** Like the service, a process that was frozen does not catch up: it continues with the next number. */
function stream({ hz, count, id = 0, nodeName = options.localNode ?? 'health_monitor' }: NodeStream): void {
  let number = 0;
  let due = performance.now();
  const next = (): void => {
    number += 1;
    const timestamp = new Date().toISOString();
    transport.publishHealth({
      cpu_percent: number,
      memory_percent: null,
      disk_percent: 0,
      temperature: id,
      status: 'OK',
      node_name: nodeName,
      timestamp,
    });
    emit('published', { id, number });
    if (number === count) return;
    due = Math.max(due + 1000 / hz, performance.now());
    const timer = setTimeout(() => {
      streamTimers = streamTimers.filter((other) => other !== timer);
      next();
    }, due - performance.now());
    streamTimers.push(timer);
  };
  next();
}

async function execute(command: NodeCommand): Promise<void> {
  switch (command.do) {
    case 'health':
      return transport.publishHealth(command.status);
    case 'alert':
      return transport.publishAlert(command.alert);
    case 'open alerts':
      return transport.publishOpenAlerts(command.alerts, command.timestamp);
    case 'shutdown':
      return transport.publishShutdown(command.progress);
    case 'stream':
      return stream(command.stream);
    case 'end streams':
      for (const timer of streamTimers.splice(0)) clearTimeout(timer);
      return;
    case 'answer calls':
      for (const answer of heldAnswers.splice(0)) answer();
      return;
    case 'details': {
      if (command.collect) globalThis.gc?.();
      const { rss, heapUsed, external } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      emit('details', { ...transport.details(), rss_bytes: rss, heap_bytes: heapUsed + external, cpu_seconds: (user + system) / 1e6 });
      return;
    }
    case 'stop':
      await transport.stop();
      process.exitCode = 0;
      input.close();
      process.stdin.destroy();
  }
}

// The process ends when its test has ended. After an error it must not continue, because that would hide the error.
process.stdout.on('error', () => process.exit(1));
process.on('uncaughtException', (error) => {
  emit('failed', { error: error.stack ?? String(error) });
  process.exit(70);
});
const input = createInterface({ input: process.stdin });
input.on('line', (line) => void execute(JSON.parse(line) as NodeCommand));
process.stdin.once('end', () => process.exit(1));
transport.start().then(
  () => emit('ready', {}),
  (error: Error) => {
    emit('failed', { error: error.message });
    process.exit(69);
  },
);
