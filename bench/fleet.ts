/** How many robots one appliance gathers on the ROS 2 graph: 10, 100 and 300 simulated ones on a network of their own. */
import { peersUnavailable } from '../testkit/dds/peers.ts';
import { type FleetResult, type FleetSetup, measureFleet } from './support/fleet-measure.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { leaveRos } from './support/ros-installation.ts';
import { sysTree } from './support/sensor-tree.ts';
import { quantile, worst } from './support/statistics.ts';

/** One that nobody else uses. */
const DOMAIN_ID = 77;
const SECONDS = 60;

type Fleet = Pick<FleetSetup, 'robots' | 'isNamespaced' | 'gather'> & { readonly name: string };

const FLEETS: readonly Fleet[] = [
  { name: '10 robots', robots: 10, isNamespaced: true, gather: false },
  { name: '100 robots', robots: 100, isNamespaced: true, gather: false },
  { name: '300 robots', robots: 300, isNamespaced: true, gather: false },
  { name: '300 robots on one topic', robots: 300, isNamespaced: false, gather: false },
  { name: '300 robots on one topic that read it too', robots: 300, isNamespaced: false, gather: true },
];
/** What one appliance promises for the largest of them. */
const PROMISED = { cpuPercent: 10, megabytes: 150, lossPercent: 1, staleSeconds: 6 } as const;

function rowsOf(name: string, fleet: FleetResult): Row[] {
  const row = (figure: string, unit: string, ours: number, atMost?: number): Row => ({
    figure: `${name}: ${figure}`,
    unit,
    // NaN: it did not come to that in time.
    ours: Number.isNaN(ours) ? null : ours,
    ...(atMost !== undefined && { atMost }),
  });
  const kilobytes = (bytes: number): number => bytes / 1e3;
  const { discoveryTraffic, traffic } = fleet;
  return [
    row('switched on together until all are discovered', 's', fleet.discoveredSeconds),
    row('publishing until all are heard', 's', fleet.heardSeconds),
    row('statuses lost', '%', (100 * (fleet.sent - fleet.stored)) / fleet.sent, PROMISED.lossPercent),
    row('CPU of the appliance, of one core', '%', fleet.cpuPercent, PROMISED.cpuPercent),
    row('the same while they are there and say nothing', '%', fleet.idleCpuPercent),
    row('resident memory, highest', 'MB', fleet.highestMegabytes, PROMISED.megabytes),
    row('own slots missed', '', fleet.missedSlots, 0),
    row('alerts that a robot is stale, of robots that are not', '', fleet.falseAlarms, 0),
    row(`a tenth of them vanishes, until the last is an alert`, 's', fleet.silentLastSeconds, PROMISED.staleSeconds),
    row('the appliance starts again, until it has heard all', 's', fleet.restartSeconds),
    row('received on the wire a second, discovery alone', 'kB', kilobytes(discoveryTraffic.receivedBytes)),
    row('received on the wire a second', 'kB', kilobytes(traffic.receivedBytes)),
    row('sent on the wire a second', 'kB', kilobytes(traffic.sentBytes)),
    row('written to disk, a day', 'MB', fleet.writtenMegabytesADay),
    row('/metrics, worst', 'ms', worst(fleet.metricsMilliseconds)),
    row('/metrics, its size', 'kB', fleet.metricsKilobytes),
    row('/status, worst', 'ms', worst(fleet.statusMilliseconds)),
    ...Object.entries(fleet.joinerSeconds).map(([vendor, seconds]) =>
      row(`a late ${vendor === 'cyclone' ? 'Cyclone DDS' : 'Fast DDS'} subscriber, until its first status`, 's', seconds),
    ),
  ];
}

function noteOf({ name, gather, isNamespaced }: Fleet, fleet: FleetResult): string {
  const topics = isNamespaced ? 'a namespace each' : 'one /health_status for all';
  return `${name}: ${topics}, \`ros.gather: ${gather}\`; ${fleet.sent} statuses sent, ${fleet.stored} stored; ${fleet.alertsSent} changes of alerts sent, ${fleet.alertsStored} stored; ${fleet.slots} own slots; ${fleet.vanished} vanished, the first an alert after ${fleet.silentFirstSeconds.toFixed(1)} s; ${quantile(fleet.statusMilliseconds, 0.5).toFixed(1)} ms for /status, half within; datagrams a second: ${fleet.traffic.receivedPackets.toFixed(0)} received, ${fleet.traffic.sentPackets.toFixed(0)} sent; load average of the machine ${fleet.load.toFixed(1)}.`;
}

await benchmark('fleet', async ({ cleanup, progress }): Promise<Outcome> => {
  const unavailable = peersUnavailable();
  if (unavailable) throw new Error(`the network and its late joiners cannot be made here: ${unavailable}`);
  leaveRos();
  const sys = await sysTree(cleanup);
  const rows: Row[] = [];
  const notes: string[] = [];
  for (const fleet of FLEETS) {
    const result = await measureFleet(cleanup, { ...fleet, seconds: SECONDS, domainId: DOMAIN_ID, sysRoot: sys.path }, (text) =>
      progress(`${fleet.name}: ${text}`),
    );
    rows.push(...rowsOf(fleet.name, result));
    notes.push(noteOf(fleet, result), ...result.complaints.slice(0, 5).map((line) => `It said: ${line}`));
  }
  return {
    rows,
    notes: [
      ...notes,
      `One appliance (bin/edge-health, embedded transport, defaults) and up to ten hosts with simulated robots in network namespaces on one bridge. Each robot is a DDS participant of its own with all nodes, topics and the service of edge-health, publishes /health_status at 1 Hz and has an alert once in ten minutes. They answer the appliance and every other participant, but pass over each other: what robots that gather say to each other is not on this network, nor is their CPU measured. A robot that reads what the appliance publishes is measured in the last fleet.`,
      `${SECONDS} s each after all were heard. Lost: statuses with a time stamp in that range, as robots sent them and as /health/aggregate has them 3 s later. CPU: /proc/PID/task/*/schedstat; the kernel does the receiver's share of a datagram over a veth pair in the sender's time, so what is sent costs more here than on a network card. Wire: \`ip -s link\` of the appliance, Ethernet headers included. Disk: write_bytes of /proc/PID/io, extrapolated; the hourly work is not in it. /metrics and /status are asked for every 15 s.`,
      sys.note,
    ],
  };
});
