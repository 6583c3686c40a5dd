/** The embedded transport as a program of its own: publishes a status a second and answers /safe_shutdown; says when it listens. */
import { EmbeddedTransport } from '../../../src/ros/embedded/transport.ts';

const transport = new EmbeddedTransport({
  place: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
  names: {
    namespace: '/',
    nodes: {
      healthMonitor: 'health_monitor',
      thresholdMonitor: 'threshold_monitor',
      alertPublisher: 'alert_publisher',
      safeShutdown: 'safe_shutdown',
    },
    topics: { healthStatus: '/health_status', alerts: '/alerts', shutdownStatus: '/shutdown_status', diagnostics: '/diagnostics' },
    services: { safeShutdown: '/safe_shutdown' },
  },
  listener: {
    onHealthStatus: () => {},
    onAlert: () => {},
    onSafeShutdown: async ({ reason }) => ({ success: true, message: `accepted ${reason}` }),
  },
  localNode: 'health_monitor',
  gather: true,
  diagnostics: () => ({ hostname: 'robot', openAlerts: [] }) as never,
  log: () => {},
  monotonicSeconds: () => performance.now() / 1000,
  wallMilliseconds: () => Date.now(),
});

await transport.start();
const timer = setInterval(() => {
  const status = {
    cpu_percent: 1,
    memory_percent: 2,
    disk_percent: null,
    temperature: 55,
    status: 'OK',
    node_name: 'health_monitor',
  } as const;
  transport.publishHealth({ ...status, timestamp: new Date().toISOString() });
}, 1000);
process.once('SIGTERM', async () => {
  clearInterval(timer);
  await transport.stop();
});
console.log('listening');
