/** Cost of receiving 10, 100 and 300 simulated robots on the ROS 2 graph, on a separate network. */
import { peersUnavailable } from '../testkit/dds/peers.ts';
import { type FleetResult, type FleetSetup, measureFleet } from './fleet/measure.ts';
import { unsourceRos } from './ros/installation.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { quantile, worst } from './support/statistics.ts';

const DOMAIN_ID = 77;
/** The length of at least two segments, because a segment is written as a whole. */
const SECONDS = 120;

type Fleet = Pick<FleetSetup, 'robots' | 'isNamespaced' | 'observe'> & { readonly name: string };

const FLEETS: readonly Fleet[] = [
  { name: '10 robots', robots: 10, isNamespaced: true, observe: false },
  { name: '100 robots', robots: 100, isNamespaced: true, observe: false },
  { name: '300 robots', robots: 300, isNamespaced: true, observe: false },
  { name: '300 robots on one topic', robots: 300, isNamespaced: false, observe: false },
  { name: '300 robots on one topic that also read it', robots: 300, isNamespaced: false, observe: true },
];
/** Limits for one appliance, including with the largest fleet. */
const LIMITS = { cpuPercent: 6, megabytes: 120, writtenMegabytes: 600, lossPercent: 1, staleSeconds: 6 } as const;

function rowsOf(name: string, fleet: FleetResult): Row[] {
  const row = (figure: string, unit: string, value: number, atMost?: number): Row => ({
    figure: `${name}: ${figure}`,
    unit,
    // NaN means a timeout.
    value: Number.isNaN(value) ? null : value,
    ...(atMost !== undefined && { atMost }),
  });
  const kilobytes = (bytes: number): number => bytes / 1e3;
  const { discoveryTraffic, traffic } = fleet;
  return [
    row('simultaneous start until all are discovered', 's', fleet.discoveredSeconds),
    row('start of publishing until a status of each was received', 's', fleet.firstStatusSeconds),
    row('statuses lost', '%', (100 * (fleet.sent - fleet.stored)) / fleet.sent, LIMITS.lossPercent),
    row('CPU of the appliance, of one core', '%', fleet.cpuPercent, LIMITS.cpuPercent),
    row('the same while no robot publishes', '%', fleet.idleCpuPercent),
    row('resident memory, highest', 'MB', fleet.highestMegabytes, LIMITS.megabytes),
    row('own samples missed', '', fleet.missedSamples, 0),
    row('false alerts of a stale robot', '', fleet.falseAlarms, 0),
    row(`a tenth of the robots vanish, until the last one is reported stale`, 's', fleet.lastStaleSeconds, LIMITS.staleSeconds),
    row('restart of the appliance until a status of each was received', 's', fleet.restartSeconds),
    row('received on the wire per second, discovery only', 'kB', kilobytes(discoveryTraffic.receivedBytes)),
    row('received on the wire per second', 'kB', kilobytes(traffic.receivedBytes)),
    row('sent on the wire per second', 'kB', kilobytes(traffic.sentBytes)),
    row('written to disk per day', 'MB', fleet.writtenMegabytesPerDay, LIMITS.writtenMegabytes),
    row('/metrics, worst', 'ms', worst(fleet.metricsMilliseconds)),
    row('/metrics, size', 'kB', fleet.metricsKilobytes),
    row('/status, worst', 'ms', worst(fleet.statusMilliseconds)),
    ...Object.entries(fleet.joinerSeconds).map(([vendor, seconds]) =>
      row(`a late ${vendor === 'cyclone' ? 'Cyclone DDS' : 'Fast DDS'} subscriber, until its first status`, 's', seconds),
    ),
  ];
}

function noteOf({ name, observe, isNamespaced }: Fleet, fleet: FleetResult): string {
  const topics = isNamespaced ? 'one namespace per robot' : 'one /health_status for all';
  return `${name}: ${topics}, \`ros.observe: ${observe ? 'always' : 'never'}\`; ${fleet.sent} statuses sent, ${fleet.stored} stored; ${fleet.alertsSent} alert changes sent, ${fleet.alertsStored} stored; ${fleet.samples} own samples; ${fleet.vanished} vanished, the first reported stale after ${fleet.firstStaleSeconds.toFixed(1)} s; ${quantile(fleet.statusMilliseconds, 0.5).toFixed(1)} ms for /status at p50; datagrams per second: ${fleet.traffic.receivedPackets.toFixed(0)} received, ${fleet.traffic.sentPackets.toFixed(0)} sent; load average of the machine ${fleet.load.toFixed(1)}.`;
}

await benchmark('fleet', async ({ cleanup, progress }): Promise<Outcome> => {
  const unavailable = peersUnavailable();
  if (unavailable) throw new Error(`the test network or its DDS peers are not available: ${unavailable}`);
  unsourceRos();
  const sys = await sysTree(cleanup);
  const rows: Row[] = [];
  const notes: string[] = [];
  for (const fleet of FLEETS) {
    const result = await measureFleet(cleanup, { ...fleet, seconds: SECONDS, domainId: DOMAIN_ID, sysRoot: sys.path }, (text) =>
      progress(`${fleet.name}: ${text}`),
    );
    rows.push(...rowsOf(fleet.name, result));
    notes.push(noteOf(fleet, result), ...result.problems.slice(0, 5).map((line) => `Log: ${line}`));
  }
  return {
    rows,
    notes: [
      ...notes,
      `One appliance (bin/edge-health, embedded transport, defaults) and up to ten hosts with simulated robots in network namespaces on one bridge. Each robot is a separate DDS participant with all nodes, topics and the service of edge-health, publishes /health_status at 1 Hz and has an alert once in ten minutes. They respond to the appliance and every other participant but ignore each other: traffic among robots that observe is not on this network, and their CPU is not measured. In the last fleet the robots also read what the appliance publishes.`,
      `${SECONDS} s for each fleet, after a status of every robot was received. Lost: statuses with a time stamp in that range that the robots sent and that /health/aggregate does not count 3 s later. CPU: /proc/PID/task/*/schedstat; over a veth pair the kernel does the receiver's work for a datagram in the sender's time, so sending costs more here than on a network card. Wire: \`ip -s link\` of the appliance, Ethernet headers included. Disk: write_bytes of /proc/PID/io, extrapolated, without the hourly work. /metrics and /status are requested every 15 s.`,
      sys.note,
    ],
  };
});
