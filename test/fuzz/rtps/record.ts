/**
 * Records the traffic between real peers, for the tests of src/rtps. By hand, as root:
 *
 *     unshare --uts sh -c 'hostname robot && node test/fuzz/rtps/record.ts'
 *
 * Needs tcpdump beside what the peers need. With ROS 2 sourced, and edge_health_interfaces on its path, ROS 2 is recorded as well.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { readCapture } from './pcap.ts';
import { select } from './select.ts';

const FOLDER = fileURLToPath(new URL('../../../src/rtps/testing/recorded/', import.meta.url));
const VERSIONS: Readonly<Record<Vendor, string>> = { cyclone: 'Cyclone DDS 0.10.2', fastdds: 'Fast DDS 2.9.1' };
const VENDOR_IDS: Readonly<Record<string, number>> = {
  cyclone: 0x0110,
  fastdds: 0x010f,
  rmw_cyclonedds_cpp: 0x0110,
  rmw_fastrtps_cpp: 0x010f,
};

const scratch = mkdtempSync(join(tmpdir(), 'record-'));
const pause = (seconds: number): Promise<void> => new Promise((done) => setTimeout(done, seconds * 1000));

/** Captures the traffic on the host's interface while the action runs, and writes a selection of it. */
async function scene(
  host: Host,
  device: string,
  name: string,
  implementation: string,
  vendorId: number,
  action: () => Promise<void>,
): Promise<void> {
  const file = join(scratch, 'capture');
  const tcpdump = host.spawn('tcpdump', ['-i', device, '-w', file, '--immediate-mode', '-Z', 'root', '-B', '16384', 'udp'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(tcpdump.stderr as NodeJS.ReadableStream, 'data');
  await action();
  await pause(0.5);
  tcpdump.kill('SIGINT');
  await once(tcpdump, 'close');
  const all = readCapture(file).filter(({ payload }) => payload.length >= 20 && payload.readUInt16BE(6) === vendorId);
  const chosen = select(all);
  const lines = chosen.map(({ source, destination, port, payload }) => {
    const deflated = deflateRawSync(payload, { level: 9 });
    const small = deflated.length < 0.7 * payload.length;
    const data = { [small ? 'deflated' : 'octets']: (small ? deflated : payload).toString('base64') };
    return JSON.stringify({ from: source, to: destination, port, ...data });
  });
  const head = JSON.stringify({ scene: name, implementation });
  writeFileSync(join(FOLDER, `${name}.jsonl`), `${[head, ...lines].join('\n')}\n`);
  console.log(`${name}: ${chosen.length} of ${all.length} datagrams, ${lines.join('\n').length} octets`);
}

/** Numbered lines, so that a fragment in the wrong place is detected. */
function textFile(octets: number): string {
  let text = '';
  for (let line = 1; text.length < octets; line += 1) text += `${line} ${'the quick brown fox jumps over the lazy dog '.repeat(4)}`;
  const file = join(scratch, `text-${octets}`);
  writeFileSync(file, text.slice(0, octets));
  return file;
}

async function topic(network: Network, vendor: Vendor): Promise<void> {
  const host = network.host();
  await scene(host, 'lo', `${vendor}-topic`, VERSIONS[vendor], VENDOR_IDS[vendor] as number, async () => {
    const values = [
      '--set',
      'cpu_percent=12.5',
      '--set',
      'memory_percent=NaN',
      '--set',
      'disk_percent=Infinity',
      '--set',
      'temperature=-40.25',
    ];
    const texts = ['--set', 'status=WARNING', '--set', 'node_name=Käfer-ロボット', '--set', 'timestamp='];
    const publisher = await Peer.start(host, vendor, 'publish', [
      '--topic',
      '/health_status',
      '--hz',
      '10',
      '--count',
      '12',
      '--stay',
      ...values,
      ...texts,
    ]);
    await publisher.waitForCount('written', 12);
    const reliable = await Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status']);
    await reliable.waitForCount('sample', 10);
    const volatile = await Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status', '--durability', 'volatile']);
    const lazy = await Peer.start(host, vendor, 'subscribe', [
      '--topic',
      '/health_status',
      '--reliability',
      'best-effort',
      '--durability',
      'volatile',
    ]);
    await pause(3);
    for (const peer of [volatile, lazy, reliable, publisher]) await peer.kill();
  });
}

async function large(network: Network, vendor: Vendor, octets: number): Promise<void> {
  const host = network.host();
  await scene(host, 'lo', `${vendor}-large-${octets}`, VERSIONS[vendor], VENDOR_IDS[vendor] as number, async () => {
    const bounded = ['--topic', '/health_status', ...(octets < 20_000 ? ['--max-message-bytes', '1400'] : [])];
    const subscriber = await Peer.start(host, vendor, 'subscribe', bounded);
    const options = ['--count', '1', '--stay', '--await-readers', '1', '--set-file', `node_name=${textFile(octets)}`];
    const publisher = await Peer.start(host, vendor, 'publish', [...bounded, ...options]);
    await subscriber.waitFor('sample');
    for (const peer of [subscriber, publisher]) await peer.kill();
  });
}

async function lossy(network: Network, vendor: Vendor): Promise<void> {
  const segment = network.segment();
  const [near, far] = [network.host(), network.host()];
  segment.attach(near);
  const { link } = await segment.attachLossy(far);
  await scene(near, 'eth0', `${vendor}-lossy`, VERSIONS[vendor], VENDOR_IDS[vendor] as number, async () => {
    const bounded = ['--topic', '/health_status', '--max-message-bytes', '1400'];
    const subscriber = await Peer.start(near, vendor, 'subscribe', bounded);
    const options = [
      '--hz',
      '100',
      '--count',
      '300',
      '--stay',
      '--await-readers',
      '1',
      '--depth',
      '4',
      '--set-file',
      `node_name=${textFile(6000)}`,
    ];
    const publisher = await Peer.start(far, vendor, 'publish', [...bounded, ...options]);
    await publisher.waitFor('matched');
    await link.set({ lossPercent: 30 });
    await publisher.waitForCount('written', 300, () => true, 30);
    await link.set({ lossPercent: 0 });
    await pause(2);
    for (const peer of [subscriber, publisher]) await peer.kill();
  });
}

async function call(network: Network, vendor: Vendor): Promise<void> {
  const host = network.host();
  const node = await GraphNode.start(host);
  node.stream({ hz: 1, count: 1000 });
  await scene(host, 'lo', `${vendor}-call`, VERSIONS[vendor], VENDOR_IDS[vendor] as number, async () => {
    const request = ['--set', 'reason=MANUAL', '--set', 'requested_by=Zoë', '--set', 'timeout=30.5'];
    const client = await Peer.start(host, vendor, 'call', ['--clients', '2', '--repeat', '2', ...request]);
    await client.waitForCount('reply', 4);
    await client.kill();
  });
  await node.kill();
}

async function graph(network: Network, vendor: Vendor, ros: 'humble' | 'iron'): Promise<void> {
  const host = network.host();
  await scene(host, 'lo', `${vendor}-graph-${ros}`, VERSIONS[vendor], VENDOR_IDS[vendor] as number, async () => {
    const options = ['--ros', ros, '--announce', '/robot1/wheel_driver'];
    const [a, b] = [await Peer.start(host, vendor, 'graph', options), await Peer.start(host, vendor, 'graph', ['--ros', ros])];
    await b.waitFor('entities');
    for (const peer of [a, b]) await peer.kill();
  });
}

/** ROS 2's own tools, one after the other. */
async function ros(network: Network, rmw: string): Promise<void> {
  const host = network.host();
  const run = async (seconds: number, ...args: string[]): Promise<void> => {
    const child = host.spawn('timeout', ['--signal=INT', String(seconds), 'ros2', ...args], {
      env: { ...process.env, RMW_IMPLEMENTATION: rmw, ROS_LOG_DIR: scratch, FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4' },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    await once(child, 'close');
  };
  const node = await GraphNode.start(host);
  node.stream({ hz: 1, count: 1000 });
  await scene(
    host,
    'lo',
    `ros2-${process.env['ROS_DISTRO']}-${rmw}`,
    `ROS 2 ${process.env['ROS_DISTRO']}, ${rmw}`,
    VENDOR_IDS[rmw] as number,
    async () => {
      await run(8, 'topic', 'echo', '/health_status');
      await run(
        8,
        'topic',
        'pub',
        '-r',
        '5',
        '-n',
        'wheel_driver',
        '/robot1/health_status',
        'edge_health_interfaces/msg/HealthStatus',
        '{cpu_percent: 12.5, node_name: wheel_driver}',
      );
      await run(
        12,
        'service',
        'call',
        '/safe_shutdown',
        'edge_health_interfaces/srv/SafeShutdown',
        '{reason: MANUAL, requested_by: me, timeout: 30.5}',
      );
    },
  );
  await node.kill();
}

const network = new Network();
try {
  const only = process.argv[2] ?? '';
  const scenes: [string, () => Promise<void>][] = VENDORS.flatMap((vendor) => [
    [`${vendor}-topic`, () => topic(network, vendor)],
    [`${vendor}-large`, () => large(network, vendor, 10_000)],
    [`${vendor}-large`, () => large(network, vendor, 100_000)],
    [`${vendor}-lossy`, () => lossy(network, vendor)],
    [`${vendor}-call`, () => call(network, vendor)],
    [`${vendor}-graph`, () => graph(network, vendor, 'humble')],
    [`${vendor}-graph`, () => graph(network, vendor, 'iron')],
  ]);
  if (process.env['ROS_DISTRO'])
    for (const rmw of ['rmw_cyclonedds_cpp', 'rmw_fastrtps_cpp']) scenes.push([`ros2-${rmw}`, () => ros(network, rmw)]);
  for (const [name, record] of scenes) if (name.startsWith(only)) await record();
  if (hostname() !== 'robot') console.log('the name of this machine may be in there: see the head of this file');
} finally {
  network.dispose();
  rmSync(scratch, { recursive: true });
}
