import type { Test } from 'tap';
import type { Alert } from '../../../core/alerts/alert.ts';
import type { HealthStatus } from '../../../core/health-status.ts';
import type { LocalWriter } from '../../../rtps/endpoints/endpoints.ts';
import { type MemoryNetwork, Wire } from '../../../rtps/testing/memory-network.ts';
import { participantOn, type TestParticipant } from '../../../rtps/testing/participants.ts';
import { VirtualTime } from '../../../rtps/testing/virtual-time.ts';
import { decode } from '../../../rtps/wire/cdr.ts';
import type { GraphOptions, Sender } from '../../graph.ts';
import { HUMBLE_PARTICIPANT_ENTITIES_INFO, PARTICIPANT_ENTITIES_INFO } from '../../interfaces.generated.ts';
import type { MessageType } from '../../interfaces.ts';
import { graphNames } from '../../names.ts';
import { EmbeddedTransport } from '../transport.ts';

export const STATUS: HealthStatus = {
  cpu_percent: 1,
  memory_percent: 2.5,
  disk_percent: null,
  temperature: 55,
  status: 'OK',
  node_name: 'other',
  timestamp: '2026-01-02T03:04:05.000Z',
};
export const ALERTED: Alert = {
  alert_id: 'other/cpu_percent/01',
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 81,
  threshold: 80,
  timestamp: STATUS.timestamp,
  resolved: false,
};
export const NAMES: GraphOptions['names'] = graphNames({ node_name: 'health_monitor', namespace: null }, []);
export const HUMBLE_INFO: MessageType = { ...PARTICIPANT_ENTITIES_INFO, ...HUMBLE_PARTICIPANT_ENTITIES_INFO };
const THRESHOLD = { warning: 80, critical: 90 };

/** The transport on one host of a network in memory, and another participant on a second host. */
export interface TransportRig {
  readonly time: VirtualTime;
  readonly wire: Wire;
  readonly network: MemoryNetwork;
  readonly transport: EmbeddedTransport;
  readonly other: TestParticipant;
  readonly lines: string[];
  readonly statuses: HealthStatus[];
  readonly alerts: Alert[];
  /** The senders of both. */
  readonly senders: (Sender | null)[];
  /** Other monitors with the name of this one, each time they were noticed. */
  readonly namesakes: (Sender | null)[];
  /** Nodes whose last writer of a participant was disposed of, and those whose lease expired. */
  readonly left: string[];
  readonly expired: string[];
  /** The decoded messages that the other participant receives on a topic. */
  reads(topic: string, type: MessageType, transientLocal?: boolean): unknown[];
  writes(topic: string, type: MessageType, offer?: { transientLocal?: boolean }): LocalWriter;
}

export function transportRig(t: Test, options: Partial<GraphOptions> = {}): TransportRig {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const lines: string[] = [];
  const statuses: HealthStatus[] = [];
  const alerts: Alert[] = [];
  const senders: (Sender | null)[] = [];
  const namesakes: (Sender | null)[] = [];
  const left: string[] = [];
  const expired: string[] = [];
  const transport = new EmbeddedTransport({
    discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
    names: NAMES,
    listener: {
      onHealthStatus: (status, sender) => {
        statuses.push(status);
        senders.push(sender);
      },
      onAlert: (alert, sender) => {
        alerts.push(alert);
        senders.push(sender);
      },
      onOwnName: (sender) => namesakes.push(sender),
      onPublisherGone: (node, _, hasLeft) => (hasLeft ? left : expired).push(node),
      onSafeShutdown: null,
    },
    localNode: 'here',
    observe: 'always',
    parameters: () => [],
    publishSeconds: 1,
    diagnostics: () => ({
      hostname: 'robot',
      openAlerts: [],
      isExpected: () => true,
      thresholds: { cpu_percent: THRESHOLD, memory_percent: THRESHOLD, disk_percent: THRESHOLD, temperature: THRESHOLD },
    }),
    log: (level, message, fields) => {
      if (level !== 'debug') lines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
    },
    monotonicSeconds: time.now,
    wallMilliseconds: () => 1_700_000_000_000,
    network,
    ...options,
  });
  const other = participantOn(wire.host({ lan: '10.0.0.2' }), time.now);
  t.teardown(async () => {
    await transport.stop();
    other.stop();
  });
  return {
    time,
    wire,
    network,
    transport,
    other,
    lines,
    statuses,
    alerts,
    senders,
    namesakes,
    left,
    expired,
    reads: (topic, type, transientLocal = true) => {
      const found: unknown[] = [];
      const onSample: Parameters<TestParticipant['createReader']>[0]['onSample'] = ({ data }) =>
        found.push(decode(type, data.payload ?? Buffer.alloc(0)));
      other.createReader({ topic, type: type.ddsName, reliable: true, transientLocal, depth: 10, userData: '', onSample });
      return found;
    },
    writes: (topic, type, { transientLocal = true } = {}) =>
      other.createWriter({ topic, type: type.ddsName, transientLocal, depth: 10, userData: '' }),
  };
}
