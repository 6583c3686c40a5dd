import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

/** Tests /safe_shutdown of the whole service, called by programs on Cyclone DDS and Fast DDS as the middlewares of ROS 2 call it. */

t.jobs = 2;
t.setTimeout(600_000);
const skip = peersUnavailable();

const asked = (reason: string, requestedBy: string, timeout: string): string[] => [
  '--set',
  `reason=${reason}`,
  '--set',
  `requested_by=${requestedBy}`,
  '--set',
  `timeout=${timeout}`,
];

function newNetwork(t: Test): Network {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network;
}

/** A folder with one hook that records the requester, and ends when `finish` was called. */
function waitingHook(t: Test): { folder: string; finish: () => void } {
  const folder = temporaryFolder(t);
  const mark = join(temporaryFolder(t), 'finish');
  const hook = join(folder, '10-slow');
  writeFileSync(
    hook,
    '#!/bin/sh\necho "for $EDGE_HEALTH_SHUTDOWN_REASON by $EDGE_HEALTH_SHUTDOWN_REQUESTED_BY"\n' +
      `while [ ! -e '${mark}' ]; do sleep 0.1; done\n`,
  );
  chmodSync(hook, 0o755);
  return { folder, finish: () => writeFileSync(mark, '') };
}

for (const vendor of VENDORS) {
  t.test(`${vendor}: accepted once, with progress reports, and otherwise refused with the reason`, { skip }, async (t) => {
    const host = newNetwork(t).host();
    const hook = waitingHook(t);
    const config = { safe_shutdown: { hooks_path: hook.folder, action: 'dry-run' } };
    const service = await HostService.start(host, temporaryFolder(t), { config });
    const listener = await Peer.start(host, vendor, 'subscribe', ['--topic', '/shutdown_status']);
    await listener.waitFor('matched', () => true);
    const call = async (...request: Parameters<typeof asked>) => {
      const peer = await Peer.start(host, vendor, 'call', [...asked(...request), '--match-seconds', '120', '--reply-seconds', '120']);
      const { data, own } = await peer.waitFor('reply', () => true);
      t.ok(own);
      return data;
    };
    const wrong = await call('BOREDOM', 'x'.repeat(129), 'nan');
    t.equal(wrong.success, false);
    for (const field of ['reason', 'requested_by', 'timeout']) t.match(wrong.message, new RegExp(`${field}: found .*allowed: `));

    const accepted = await call('MAINTENANCE', 'Wärter 日本', '120');
    t.equal(accepted.success, true, accepted.message);
    const second = await call('MANUAL', 'somebody else', '5');
    t.equal(second.success, false);
    t.match(second.message, /already in progress: MAINTENANCE, requested by Wärter 日本, \d+\.\d s left/);
    t.match(await service.get<StatusDocument>('/status'), { shutdown: { state: 'in_progress', reason: 'MAINTENANCE', step: 'hooks' } });

    const escalating = await call('EMERGENCY', 'watchdog', '100');
    t.equal(escalating.success, true, escalating.message);
    t.match(escalating.message, /^escalated: dry-run for EMERGENCY within \d+\.\d s, requested for MAINTENANCE by Wärter 日本; request 0/);
    const reported = await listener.waitFor('sample', ({ data }) => data['reason'] === 'EMERGENCY');
    t.match(reported.data, { state: 'in_progress', step: 'hooks', requested_by: 'watchdog' });

    hook.finish();
    const last = await listener.waitFor('sample', ({ data }) => data['state'] === 'completed');
    t.equal(last.data['request_id'], reported.data['request_id']);
    t.match(last.data, { reason: 'EMERGENCY', requested_by: 'watchdog', action: 'dry-run', step: 'power' });
    const steps = new Set(listener.all('sample').map(({ data }) => data['step']));
    t.same([...steps], ['announce', 'hooks', 'stop_units', 'store', 'power'], 'each step was reported, in order');
    t.match(service.log, /for MAINTENANCE by Wärter 日本/, 'the hook was reported who asked, and the log has what it said');
    const { shutdown } = await service.get<StatusDocument>('/status');
    t.match(shutdown, { state: 'completed', accepted: 2 });
    // While its caller ends, a refused request may be received again.
    t.ok(shutdown.refused >= 2 && shutdown.requests.length === 2 + shutdown.refused, 'each request is on record');
    t.ok(shutdown.requests.every(({ address }) => address === '127.0.0.1'));
    await service.end();
  });

  t.test(`${vendor}: another host is refused, unless it is listed`, { skip }, async (t) => {
    const network = newNetwork(t);
    const segment = network.segment();
    const [here, friend, stranger, there] = [network.host(), network.host(), network.host(), network.host()];
    segment.attach(here);
    const { address } = segment.attach(friend);
    const { address: strange } = segment.attach(stranger);
    segment.attach(there);
    const hook = waitingHook(t);
    hook.finish();
    const config = { safe_shutdown: { allow_from: [address], action: 'dry-run', hooks_path: hook.folder } };
    const service = await HostService.start(here, temporaryFolder(t), { config });
    const caller = (host: typeof here, service: string, ...more: readonly string[]): Promise<Peer> =>
      Peer.start(host, vendor, 'call', [
        ...asked('USER_REQUEST', 'me', '120'),
        '--service',
        service,
        '--match-seconds',
        '120',
        '--reply-seconds',
        '120',
        ...more,
      ]);
    const call = async (host: typeof here, service = '/safe_shutdown') =>
      (await (await caller(host, service)).waitFor('reply', () => true)).data;
    for (const name of ['/safe_shutdown', '/health_monitor/safe_shutdown']) {
      const refused = await call(stranger, name);
      t.equal(refused.success, false);
      t.match(refused.message, /requests from 10\.77\.1\.3 are not accepted.*allow_from/, name);
    }
    const { refused, requests } = (await service.get<StatusDocument>('/status')).shutdown;
    t.ok(refused >= 2 && requests.length === refused && requests.every((one) => one.address === strange), 'each is on record');
    const second = await HostService.start(there, temporaryFolder(t), {
      config: { node_name: 'second', safe_shutdown: { allow_from: [strange], action: 'dry-run', hooks_path: hook.folder } },
    });
    await service.untilGet<StatusDocument>('/status', ({ ros }) => ros.note !== null);
    let replies: readonly { readonly data: { readonly success: boolean } }[] = [];
    // A request may reach only the machine that was discovered first.
    while (replies.length === 0) {
      const peer = await caller(stranger, '/safe_shutdown', '--reply-seconds', '2', '--listen-ms', '1000');
      await peer.ended;
      replies = peer.all('reply');
    }
    t.same(
      replies.map(({ data }) => data.success),
      [true],
      'of two machines, only the one that accepts the caller responds',
    );
    await second.end();
    const accepted = await call(friend);
    t.equal(accepted.success, true, accepted.message);
    await service.untilGet<StatusDocument>('/status', ({ shutdown }) => shutdown.state === 'completed');
    t.equal((await call(here)).success, true, 'this host always may');
    await service.end();
  });
}

t.test('a disabled shutdown offers no service', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const service = await HostService.start(host, temporaryFolder(t), { config: { safe_shutdown: { enabled: false } } });
  await service.untilGet<StatusDocument>('/status', ({ ros }) => ros.transport === 'embedded');
  const peer = await Peer.start(host, 'cyclone', 'call', [...asked('MANUAL', 'me', '5'), '--match-seconds', '3']);
  t.ok(await peer.waitFor('service_missing', () => true));
  await service.end();
});
