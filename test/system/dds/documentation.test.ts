import t from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { documentedSubscriptions } from '../../../testkit/ros-commands.ts';

/** The subscriptions that the documentation shows, with the QoS that they request; test/system/ros2 runs the commands themselves. */

t.setTimeout(600_000);

const SUBSCRIPTIONS = documentedSubscriptions();
const WHOLE_PAST = ['--reliability', 'reliable', '--durability', 'transient-local', '--depth', '1000'];

t.test('every documented subscription receives what the documentation promises', { skip: peersUnavailable() }, async (t) => {
  const topics = new Set(SUBSCRIPTIONS.map(({ topic }) => topic));
  for (const topic of ['/health_status', '/alerts', '/shutdown_status', '/diagnostics']) t.ok(topics.has(topic), `${topic} is among them`);
  const network = new Network();
  t.teardown(() => network.dispose());
  const host = network.host();
  const config = {
    alerts: { raise_after_seconds: 0 },
    // Memory is always in use.
    thresholds: { memory: { warning: 0.1, critical: 99.9 } },
    safe_shutdown: { action: 'dry-run' },
  };
  const service = await HostService.start(host, temporaryFolder(t), { config });
  await service.untilGet<{ data: Alert[] }>('/alerts?metric=memory_percent', ({ data }) => data.length > 0);
  const request = ['--set', 'reason=MANUAL', '--set', 'requested_by=operator', '--set', 'timeout=60'];
  const { data } = await (await Peer.start(host, 'cyclone', 'call', request)).waitFor('reply');
  t.equal(data.success, true, data.message);
  await service.untilGet<StatusDocument>('/status', ({ shutdown }) => shutdown.state === 'completed');

  for (const vendor of VENDORS) {
    const whole = await Peer.start(host, vendor, 'subscribe', [...WHOLE_PAST, '--topic', '/shutdown_status']);
    await whole.waitFor('sample', ({ data }) => data['state'] === 'completed');
    const discovery = await Peer.start(host, vendor, 'discovery');
    for (const { command, topic, reliability, durability, depth, wantsPast } of SUBSCRIPTIONS) {
      await t.test(`${vendor}: ${command}`, async (t) => {
        const offered = await discovery.waitFor('endpoint', (found) => found.kind === 'writer' && found.topic === `rt${topic}`);
        const qos = ['--reliability', reliability ?? offered.reliability, '--durability', durability ?? offered.durability];
        const peer = await Peer.start(host, vendor, 'subscribe', [...qos, '--depth', String(depth), '--topic', topic]);
        await peer.waitFor('matched');
        // A program that wants the past receives all of it; one that does not may have to wait for a message.
        if (wantsPast && topic === '/shutdown_status') {
          const steps = await peer.waitForCount('sample', whole.all('sample').length);
          t.same(
            steps.map(({ data }) => data),
            whole.all('sample').map(({ data }) => data),
          );
        } else await peer.waitFor('sample');
        t.same(peer.all('incompatible'), []);
        await peer.kill();
      });
    }
    await Promise.all([whole.kill(), discovery.kill()]);
  }
  await service.end();
});
