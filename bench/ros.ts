/** Latency, cost and losses of both ROS 2 transports, with subscribers of both DDS vendors. */

import { peersUnavailable } from '../testkit/dds/peers.ts';
import { Network } from '../testkit/network/network.ts';
import { type AtRest, type Contestant, measureAtRest } from './ros/at-rest.ts';
import { prepareRos, type RosInstallation, unsourceRos } from './ros/installation.ts';
import { bundlePublisher } from './ros/processes.ts';
import { measureStream, type StreamResult } from './ros/stream.ts';
import { VENDOR_NAMES, VENDORS, type Vendor } from './ros/subscriber.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark, type Context } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { median, quantile, worst } from './support/statistics.ts';

const LATENCY_HERTZ = 50;
const FAST_HERTZ = 1000;
const STREAM_SECONDS = 60;
/** Measurement at rest as a share of the long measurement. */
const AT_REST_SHARE = 0.5;
/** Each measurement runs in a separate network; at rest, each contestant gets its own domain, counted from `atRest`. */
const DOMAIN_IDS = { streams: 60, atRest: 70 } as const;

const TRANSPORTS = ['embedded', 'rclnodejs'] as const;
type Transport = (typeof TRANSPORTS)[number];
/** A value is null if it was not measured because ROS 2 is not installed. */
type Both<T> = Readonly<Record<Transport, T | null>>;

const CONTESTANTS = {
  nothing: { kind: 'alone', transport: 'nothing', publishes: true },
  embedded: { kind: 'alone', transport: 'embedded', publishes: true },
  rclnodejs: { kind: 'alone', transport: 'rclnodejs', publishes: true },
  idle: { kind: 'alone', transport: 'rclnodejs', publishes: false },
  oneNode: { kind: 'alone', transport: 'one node', publishes: false },
  serviceOff: { kind: 'service', transport: 'off' },
  serviceEmbedded: { kind: 'service', transport: 'embedded' },
  serviceRclnodejs: { kind: 'service', transport: 'rclnodejs' },
} as const satisfies Readonly<Record<string, Contestant>>;
type Name = keyof typeof CONTESTANTS;
const NEEDS_ROS: readonly Name[] = ['rclnodejs', 'idle', 'oneNode', 'serviceRclnodejs'];

type AllAtRest = Readonly<Record<Name, AtRest | null>>;

/** A row of the embedded transport with rclnodejs as its baseline, if that was measured. */
function withRclnodejs(row: Omit<Row, 'value' | 'baseline'>, embedded: number, rclnodejs: number | null): Row {
  return { ...row, value: embedded, ...(rclnodejs !== null && { baseline: { name: 'rclnodejs', value: rclnodejs } }) };
}

/** A row of all four nodes with a single idle node, the minimum of rclnodejs, as its baseline. */
function withOneNode(row: Row, value: number | null): Row {
  return value === null ? row : { ...row, baseline: { name: 'one idle node, spin(node, 500)', value } };
}

function of(stream: StreamResult, vendor: Vendor): StreamResult['received'][number] {
  return stream.received.find((received) => received.vendor === vendor) as StreamResult['received'][number];
}

function latencyRows(streams: Both<StreamResult>, atRest: AllAtRest): Row[] {
  const rows: Row[] = [];
  const at = `at ${LATENCY_HERTZ} Hz`;
  for (const transport of TRANSPORTS) {
    for (const vendor of VENDORS) {
      const stream = streams[transport];
      const value = stream && quantile(of(stream, vendor).milliseconds, 0.99);
      rows.push({ figure: `publish to receive ${at}, p99: ${transport} to ${VENDOR_NAMES[vendor]}`, unit: 'ms', value, atMost: 5 });
    }
  }
  for (const [label, statistic] of [
    ['p50', median],
    ['longest', worst],
  ] as const) {
    for (const vendor of VENDORS) {
      const value = (transport: Transport): number | null => streams[transport] && statistic(of(streams[transport], vendor).milliseconds);
      const row = { figure: `the same, ${label}: embedded to ${VENDOR_NAMES[vendor]}`, unit: 'ms' };
      rows.push(withRclnodejs(row, value('embedded') as number, value('rclnodejs')));
    }
  }
  for (const vendor of VENDORS) {
    const value = (transport: Transport): number | null =>
      atRest[transport] && quantile(atRest[transport].milliseconds[vendor] ?? [], 0.99);
    const row = { figure: `publish to receive at 1 Hz, p99: embedded to ${VENDOR_NAMES[vendor]}`, unit: 'ms' };
    rows.push(withRclnodejs(row, value('embedded') as number, value('rclnodejs')));
  }
  return rows;
}

function costRows(at: AllAtRest): Row[] {
  const { embedded, idle, nothing, oneNode, rclnodejs, serviceEmbedded, serviceOff, serviceRclnodejs } = at;
  if (!embedded || !nothing || !serviceEmbedded || !serviceOff) throw new Error('a measurement without ROS 2 is missing');
  const cpu = (one: AtRest | null): number | null => one?.cpuPercent ?? null;
  const memory = (one: AtRest | null): number | null => one?.megabytes ?? null;
  const more = (one: AtRest | null, value: (one: AtRest) => number): number | null => one && value(one) - value(serviceOff);
  return [
    withRclnodejs(
      { figure: 'CPU at 1 Hz with two subscribers, of one core: embedded alone', unit: '%', atMost: 0.2 },
      embedded.cpuPercent,
      cpu(rclnodejs),
    ),
    { figure: 'the same: rclnodejs alone', unit: '%', value: cpu(rclnodejs), atMost: 0.15 },
    { figure: 'the same: a timer without a transport', unit: '%', value: nothing.cpuPercent },
    withOneNode(
      { figure: 'CPU of rclnodejs with all four nodes, publishing nothing', unit: '%', value: cpu(idle), atMost: 0.15 },
      cpu(oneNode),
    ),
    withRclnodejs({ figure: 'resident memory at 1 Hz: embedded alone', unit: 'MB' }, embedded.megabytes, memory(rclnodejs)),
    withOneNode({ figure: 'the same: rclnodejs alone', unit: 'MB', value: memory(rclnodejs), atMost: 65 }, memory(oneNode)),
    { figure: 'the same: a timer without a transport', unit: 'MB', value: nothing.megabytes },
    { figure: 'CPU of the service at 1 Hz, ros.transport off', unit: '%', value: serviceOff.cpuPercent },
    withRclnodejs(
      { figure: 'increase with the ROS 2 graph: embedded', unit: '%' },
      more(serviceEmbedded, (one) => one.cpuPercent) as number,
      more(serviceRclnodejs, (one) => one.cpuPercent),
    ),
    { figure: 'resident memory of the service at 1 Hz, ros.transport off', unit: 'MB', value: serviceOff.megabytes },
    withRclnodejs({ figure: 'the same, ros.transport embedded', unit: 'MB' }, serviceEmbedded.megabytes, memory(serviceRclnodejs)),
  ];
}

function fastRows(streams: Both<StreamResult>): Row[] {
  const rows: Row[] = [];
  const rate = FAST_HERTZ.toLocaleString('en-US');
  for (const transport of TRANSPORTS) {
    for (const vendor of VENDORS) {
      const stream = streams[transport];
      const value = stream && of(stream, vendor).lost;
      rows.push({ figure: `statuses lost at ${rate} Hz: ${transport} to ${VENDOR_NAMES[vendor]}`, unit: '', value, atMost: 0 });
    }
  }
  const { embedded, rclnodejs } = streams;
  if (!embedded) throw new Error('the embedded transport was not measured');
  for (const vendor of VENDORS) {
    const value = (stream: StreamResult): number => quantile(of(stream, vendor).milliseconds, 0.99);
    const row = { figure: `publish to receive at ${rate} Hz, p99: embedded to ${VENDOR_NAMES[vendor]}`, unit: 'ms' };
    rows.push(withRclnodejs(row, value(embedded), rclnodejs && value(rclnodejs)));
  }
  rows.push(
    withRclnodejs({ figure: `CPU at ${rate} Hz, of one core: embedded`, unit: '%' }, embedded.cpuPercent, rclnodejs?.cpuPercent ?? null),
  );
  return rows;
}

async function measureAll({ cleanup, minutes, progress }: Context): Promise<Outcome> {
  const unavailable = peersUnavailable();
  if (unavailable) throw new Error(`the subscribers on other DDS implementations are not available: ${unavailable}`);
  const sourced = unsourceRos();
  const bundle = await bundlePublisher(cleanup);
  const sys = await sysTree(cleanup);
  progress('preparing rclnodejs, if ROS 2 is sourced');
  const found = await prepareIn(sourced, cleanup);
  const ros = 'reason' in found ? null : found;

  const seconds = Math.min(STREAM_SECONDS, minutes * 60);
  const stream = async (hertz: number): Promise<Both<StreamResult>> => {
    const one = async (transport: Transport): Promise<StreamResult> => {
      progress(`${transport}, ${hertz} Hz, ${seconds} s`);
      return measureStream(cleanup, bundle, ros, { transport, domainId: DOMAIN_IDS.streams, hertz, seconds });
    };
    return { embedded: await one('embedded'), rclnodejs: ros && (await one('rclnodejs')) };
  };
  const slow = await stream(LATENCY_HERTZ);
  const fast = await stream(FAST_HERTZ);

  const names = (Object.keys(CONTESTANTS) as Name[]).filter((name) => ros !== null || !NEEDS_ROS.includes(name));
  const atRestSeconds = minutes * 60 * AT_REST_SHARE;
  progress(`${names.length} processes at 1 Hz for ${atRestSeconds} s after a warm-up`);
  const measured = await measureAtRest(
    cleanup,
    bundle,
    ros,
    { contestants: names.map((name) => CONTESTANTS[name]), firstDomainId: DOMAIN_IDS.atRest, seconds: atRestSeconds, sysRoot: sys.path },
    progress,
  );
  const atRest = Object.fromEntries(
    (Object.keys(CONTESTANTS) as Name[]).map((name) => [name, measured[names.indexOf(name)] ?? null]),
  ) as AllAtRest;

  return {
    rows: [...latencyRows(slow, atRest), ...costRows(atRest), ...fastRows(fast)],
    notes: [
      'reason' in found
        ? `rclnodejs: not measured, since ${found.reason}.`
        : `rclnodejs: ${found.name}, prepared by \`edge-health ros-setup\`.`,
      `Each transport publishes to a subscriber on Cyclone DDS and one on Fast DDS (Debian's packages) at the same time, over the loopback interface of a separate network namespace; reliable, transient local, keep last 10. ${LATENCY_HERTZ} Hz and ${FAST_HERTZ.toLocaleString('en-US')} Hz: the transport alone in a process with the service's Node options, ${seconds} s after a warm-up, one transport after the other.`,
      "Publish to receive: from right before the call of the transport (a time stamp with microseconds in the status itself) to the subscriber's callback, both in wall-clock time of the same machine.",
      `At 1 Hz: ${atRestSeconds} s after a warm-up, all of them at the same time, each with two subscribers, which received every status. CPU: the kernel's account of every thread (/proc/PID/task/*/schedstat). Memory: the highest VmRSS, read every 5 s.`,
      'Alone: the four nodes with their topics and the service, including the reception of remote messages; no REST, no store, no sensors. The idle figures have no subscribers. 0.15 % and 65 MB are what rclnodejs with a single node at 1 Hz took on another machine, where Node by itself had 42 MB.',
      sys.note,
    ],
  };
}

async function prepareIn(sourced: NodeJS.ProcessEnv, cleanup: Context['cleanup']): Promise<RosInstallation | { readonly reason: string }> {
  const network = new Network();
  try {
    return await prepareRos(sourced, network.host(), cleanup);
  } finally {
    network.dispose();
  }
}

await benchmark('ros', measureAll);
