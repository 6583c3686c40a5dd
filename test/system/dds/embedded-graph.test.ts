import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { HEALTH } from '../../../testkit/dds/contents.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, type PeerEvent, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';

/** Tests discovery and the graph of nodes of the embedded transport, as programs on Cyclone DDS and on Fast DDS see them. */

t.jobs = 3;
t.setTimeout(600_000);
const skip = peersUnavailable();

/** As the generator of Jazzy computes them. */
const HASHES = JSON.parse(readFileSync(join(ROOT, 'testkit/fixtures/ros2-type-hashes.json'), 'utf8')) as Readonly<Record<string, string>>;
const hashOf = (type: string): string => `typehash=${HASHES[type]};`;
const PACKAGE = 'edge_health_interfaces';

const [RELIABLE, LASTING, FLEETING] = ['reliable', 'transient-local', 'volatile'] as const;
const WRITERS = [
  [
    'ros_discovery_info',
    'rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_',
    LASTING,
    hashOf('rmw_dds_common/msg/ParticipantEntitiesInfo'),
  ],
  [
    'rr/health_monitor/safe_shutdownReply',
    `${PACKAGE}::srv::dds_::SafeShutdown_Response_`,
    FLEETING,
    hashOf(`${PACKAGE}/srv/SafeShutdown_Response`),
  ],
  ['rr/safe_shutdownReply', `${PACKAGE}::srv::dds_::SafeShutdown_Response_`, FLEETING, hashOf(`${PACKAGE}/srv/SafeShutdown_Response`)],
  ['rt/_edge_health/always/health_monitor', `${PACKAGE}::msg::dds_::HealthStatus_`, FLEETING, hashOf(`${PACKAGE}/msg/HealthStatus`)],
  ['rt/alerts', `${PACKAGE}::msg::dds_::Alert_`, LASTING, hashOf(`${PACKAGE}/msg/Alert`)],
  ['rt/diagnostics', 'diagnostic_msgs::msg::dds_::DiagnosticArray_', FLEETING, hashOf('diagnostic_msgs/msg/DiagnosticArray')],
  ['rt/health_status', `${PACKAGE}::msg::dds_::HealthStatus_`, LASTING, hashOf(`${PACKAGE}/msg/HealthStatus`)],
  ['rt/open_alerts', `${PACKAGE}::msg::dds_::AlertArray_`, LASTING, hashOf(`${PACKAGE}/msg/AlertArray`)],
  ['rt/shutdown_status', `${PACKAGE}::msg::dds_::ShutdownStatus_`, LASTING, hashOf(`${PACKAGE}/msg/ShutdownStatus`)],
] as const;
const READERS = [
  [
    'rq/health_monitor/safe_shutdownRequest',
    `${PACKAGE}::srv::dds_::SafeShutdown_Request_`,
    FLEETING,
    hashOf(`${PACKAGE}/srv/SafeShutdown_Request`),
  ],
  ['rq/safe_shutdownRequest', `${PACKAGE}::srv::dds_::SafeShutdown_Request_`, FLEETING, hashOf(`${PACKAGE}/srv/SafeShutdown_Request`)],
  // A transient local publisher gets the announcement of a transient local reader instead.
  ['rt/alerts', `${PACKAGE}::msg::dds_::Alert_`, FLEETING, hashOf(`${PACKAGE}/msg/Alert`)],
  ['rt/health_status', `${PACKAGE}::msg::dds_::HealthStatus_`, FLEETING, hashOf(`${PACKAGE}/msg/HealthStatus`)],
] as const;
/** It shows rmw_cyclonedds which endpoints belong to one service. */
const SERVICE_ID = /^serviceid=[0-9a-f]{1,2}(\.[0-9a-f]{1,2}){15};/;
/** Under load a discovery may take its time; no test result depends on it. */
const TIMEOUT_SECONDS = 120;

function lonelyHost(t: Test): Host {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network.host();
}

/** The endpoints that an observer found, each once, in the order of their topics. */
function endpointsOf(observer: Peer, kind: 'reader' | 'writer'): PeerEvent<'endpoint'>[] {
  const last = new Map(observer.all('endpoint').map((endpoint) => [endpoint.guid, endpoint]));
  return [...last.values()].filter((endpoint) => endpoint.kind === kind).sort((a, b) => (a.topic < b.topic ? -1 : 1));
}

for (const vendor of VENDORS) {
  t.test(`${vendor} discovers the participant, each endpoint with its QoS and type hash, and their end`, { skip }, async (t) => {
    const host = lonelyHost(t);
    const observer = await Peer.start(host, vendor, 'discovery');
    await observer.waitFor('reader', () => true, TIMEOUT_SECONDS);
    // Fast DDS distinguishes a goodbye from an expired lease; with Cyclone DDS it is one if the lease is longer than the test may take.
    const node = await GraphNode.start(host, vendor === 'fastdds' ? {} : { leaseSeconds: 1000 });
    await observer.waitForCount('endpoint', WRITERS.length + READERS.length, () => true, TIMEOUT_SECONDS);
    const participant = await observer.waitFor('participant');
    t.equal(participant.user_data, 'enclave=/;');
    if (vendor === 'fastdds') t.match(participant, { vendor: '0000', lease_seconds: 20, name: '/health_monitor' });

    for (const [kind, expected] of [
      ['writer', WRITERS],
      ['reader', READERS],
    ] as const) {
      const found = endpointsOf(observer, kind);
      t.strictSame(
        found.map(({ topic, type, reliability, durability, user_data }) => [
          topic,
          type,
          reliability,
          durability,
          user_data.replace(SERVICE_ID, ''),
        ]),
        expected.map(([topic, type, durability, userData]) => [topic, type, RELIABLE, durability, userData]),
      );
      t.ok(found.every((endpoint) => endpoint.participant === participant.guid));
    }
    const ids = observer.all('endpoint').map(({ topic, user_data }) => [topic.slice(0, 2), SERVICE_ID.exec(user_data)?.[0]] as const);
    const [request] = ids.filter(([prefix]) => prefix === 'rq');
    t.type(request?.[1], 'string');
    t.same(ids.find(([prefix]) => prefix === 'rr')?.[1], request?.[1], 'both ends of the service name the same one');
    t.ok(ids.every(([prefix, id]) => (id === undefined) === (prefix !== 'rq' && prefix !== 'rr')));

    const subscriber = await Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status']);
    node.publishHealth(HEALTH);
    await subscriber.waitFor('sample', () => true, TIMEOUT_SECONDS);
    t.equal(await node.stop(), 0);
    const gone = await observer.waitFor('participant_gone', ({ guid }) => guid === participant.guid);
    await subscriber.waitFor('unmatched');
    if (vendor === 'fastdds') t.equal(gone.how, 'goodbye');
    await observer.waitForCount('endpoint_gone', WRITERS.length + READERS.length);
  });

  for (const ros of ['humble', 'iron'] as const) {
    t.test(`${vendor} reads the nodes and their endpoints from ros_discovery_info, as of ${ros}`, { skip }, async (t) => {
      const host = lonelyHost(t);
      const observer = await Peer.start(host, vendor, 'discovery');
      const node = await GraphNode.start(host, { namespace: '/robot7' });
      const early = await Peer.start(host, vendor, 'graph', ['--ros', ros]);
      // The node creates a further reader for its topic.
      await Peer.start(host, 'cyclone', 'publish', ['--topic', '/arm/health_status', '--hz', '10']);
      const { participant } = await observer.waitFor('endpoint', ({ topic }) => topic === 'rt/diagnostics', TIMEOUT_SECONDS);
      const isOurs = (endpoint: PeerEvent<'endpoint'>): boolean => endpoint.participant === participant;
      const added = await observer.waitFor(
        'endpoint',
        (endpoint) => isOurs(endpoint) && endpoint.topic === 'rt/arm/health_status',
        TIMEOUT_SECONDS,
      );
      const gidOf = (guid: string): string => guid + (ros === 'humble' ? '0'.repeat(16) : '');
      const gids = (kind: 'reader' | 'writer', ...topics: string[]): string[] => {
        const found = endpointsOf(observer, kind).filter((endpoint) => isOurs(endpoint) && topics.includes(endpoint.topic));
        t.same(found.map(({ topic }) => topic).sort(), topics);
        return found.map(({ guid }) => gidOf(guid)).sort();
      };
      const expected = [
        {
          name: 'health_monitor',
          writers: gids('writer', 'rt/_edge_health/always/health_monitor', 'rt/diagnostics', 'rt/robot7/health_status'),
          readers: [],
        },
        { name: 'threshold_monitor', writers: [], readers: gids('reader', 'rt/arm/health_status', 'rt/robot7/health_status') },
        {
          name: 'alert_publisher',
          writers: gids('writer', 'rt/robot7/alerts', 'rt/robot7/open_alerts'),
          readers: gids('reader', 'rt/robot7/alerts'),
        },
        {
          name: 'safe_shutdown',
          writers: gids(
            'writer',
            'rr/robot7/health_monitor/safe_shutdownReply',
            'rr/robot7/safe_shutdownReply',
            'rt/robot7/shutdown_status',
          ),
          readers: gids('reader', 'rq/robot7/health_monitor/safe_shutdownRequest', 'rq/robot7/safe_shutdownRequest'),
        },
      ].map((entry) => ({ namespace: '/robot7', ...entry }));
      const late = await Peer.start(host, vendor, 'graph', ['--ros', ros]);
      for (const reader of [early, late]) {
        const listsAll = (event: PeerEvent<'entities'>): boolean => event.nodes.some(({ readers }) => readers.includes(gidOf(added.guid)));
        const { gid, nodes } = await reader.waitFor('entities', listsAll, TIMEOUT_SECONDS);
        t.equal(gid, gidOf(participant));
        // Readers that are announced to a publisher only are not endpoints for the observer.
        const known = new Set(observer.all('endpoint').map(({ guid }) => gidOf(guid)));
        t.strictSame(
          nodes.map((entry) => ({
            ...entry,
            readers: entry.readers.filter((guid) => known.has(guid)).sort(),
            writers: [...entry.writers].sort(),
          })),
          expected,
        );
      }
      t.equal(late.all('entities').length, 1, 'a late one gets the last word alone');
      await node.stop();
    });
  }

  t.test(`${vendor}: peers that come and go are counted, and removed at once after a goodbye`, { skip }, async (t) => {
    const host = lonelyHost(t);
    const node = await GraphNode.start(host);
    const options = ['--topic', '/health_status', '--topic', '/alerts'];
    const peers = await Promise.all([1, 2, 3].map(() => Peer.start(host, vendor, 'subscribe', options)));
    await node.detailsUntil((details) => details.peers === 3 && details.subscribers === 3, TIMEOUT_SECONDS);
    for (const [index, peer] of peers.entries()) {
      await peer.kill();
      await node.detailsUntil((details) => details.peers === 2 - index && details.subscribers === 2 - index);
    }
    const reasons = node.all('log').flatMap(({ message, fields }) => (message === 'participant gone' ? [fields['why']] : []));
    t.same(reasons, ['left'], 'none because its lease had expired; the line is not repeated so soon');
  });
}
