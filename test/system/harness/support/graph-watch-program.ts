/**
 * The subscription of the harness in a separate process, controlled by graph-watch.ts: what it receives goes as lines of JSON to standard
 * output, `weigh` and `stop` come as lines on standard input, and it ends when that does.
 */
import { createInterface } from 'node:readline';
import { topicSubscription, transportEnvironment } from '../../../../src/client/topic-subscription.ts';
import type { GraphWatchEvents, GraphWatchOptions } from './graph-watch.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as GraphWatchOptions;

function tell<Kind extends keyof GraphWatchEvents>(event: Kind, what: GraphWatchEvents[Kind]): void {
  process.stdout.write(`${JSON.stringify({ event, wall_ms: Date.now(), ...what })}\n`);
}

const asked = { transport: options.transport ?? 'auto', environment: process.env, dataFolder: options.dataFolder ?? null } as const;
const environment = transportEnvironment(asked);
if (environment) process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment);

async function main(): Promise<void> {
  const source = await topicSubscription({
    ...asked,
    ros: { discovery_range: null, static_peers: null, ...options.ros, domain_id: options.domainId ?? options.ros?.domain_id ?? null },
    node: options.node ?? 'health_monitor',
    listener: {
      onStatus: (_by, status) => tell('status', { status }),
      onAlert: (_by, alert) => tell('alert', { alert }),
      onNote: (text) => tell('note', { text }),
    },
  });
  await source.start();
  tell('ready', { transport: source.transport, reason: source.reason });
  const input = createInterface({ input: process.stdin });
  input.on('line', (line) => {
    if (line === 'weigh') {
      const { user, system } = process.cpuUsage();
      tell('weight', { rss_bytes: process.memoryUsage().rss, cpu_seconds: (user + system) / 1e6, mono_seconds: performance.now() / 1000 });
    } else {
      void source.stop().then(() => {
        input.close();
        process.stdin.destroy();
      });
    }
  });
  process.stdin.once('end', () => process.exit(1));
}

process.stdout.on('error', () => process.exit(1));
main().catch((error: Error) => {
  tell('failed', { error: error.message });
  process.exitCode = 69;
  process.stdin.destroy();
});
