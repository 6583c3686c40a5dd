/** Faults by clients of the event stream that never read. */
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { type FaultBench, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';
import { attacker, FloodMeter, flood, meterText, PRIORITY } from './support/flood-meter.ts';

const fault = faultsOf('clients');

const CLIENTS = 1000;
/** The longest name, so that more waits for a client that does not read. */
const LONG_NAME = 'health_monitor_'.padEnd(64, 'x');
const EXPECTED =
  'memory stays below 80 % of MemoryMax, sampling continues, clients that read get everything, and when the others are gone all is as before';

interface Sent {
  readonly opened: number;
  readonly closed: number;
  readonly answers: Readonly<Record<string, number>>;
}

interface Outcome {
  readonly sent: Sent;
  readonly rest: StatusDocument['rest'];
  readonly mostStreams: number;
  readonly text: string;
  readonly recoverySeconds: number;
}

/** A thousand clients request /events and read nothing, until `until` holds or for so many seconds. */
async function stalledClients(bench: FaultBench, seconds: number, until: (streams: number, most: number) => boolean): Promise<Outcome> {
  const host = attacker(bench);
  // The kernel of the clients buffers little for them: the service has to hold the rest.
  host.exec('sh', '-c', 'echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_rmem');
  const meter = await FloodMeter.start(bench);
  const clients = await flood(bench, host, 'streams', 600);
  let mostStreams = 0;
  let status = await bench.appliance.status();
  const endMs = Date.now() + seconds * 1000;
  while (Date.now() < endMs && !until(status.rest.event_streams, mostStreams)) {
    await pause(0.5);
    // While the clients connect, a request may find no free connection; it is then sent again.
    status = await bench.appliance.status().catch(() => status);
    mostStreams = Math.max(mostStreams, status.rest.event_streams);
  }
  const sent = await clients.end<Sent>(true);
  const metered = await meter.end();
  return { sent, rest: status.rest, mostStreams, text: meterText(metered), recoverySeconds: metered.recoverySeconds };
}

fault(
  'clients-beyond-limit',
  {
    expected: `1,000 event-stream clients that never read, where 64 are allowed, 32 of them of one address: the others are refused with an answer; ${EXPECTED}`,
    boot: { lan: 'good', files: PRIORITY },
  },
  async (bench) => {
    const { sent, mostStreams, text, recoverySeconds } = await stalledClients(bench, 20, () => false);
    const { '200': served = 0, '503': refused = 0, ...others } = sent.answers;
    bench.check('no more than half of 64 are served at a time', mostStreams <= 40 && served >= 30, { mostStreams, served });
    bench.check('the others are refused with 503 or closed', refused > 0 && Object.keys(others).length === 0, sent);
    return bench.finish({
      observed: `${sent.opened} connected: ${served} served, ${refused} refused with 503, ${sent.closed} closed; ${text}`,
      recoverySeconds,
    });
  },
);

fault(
  'clients-that-never-read',
  {
    expected: `1,000 event-stream clients that never read, where 1,000 of one address are allowed: each is disconnected once it has taken nothing for half a minute; ${EXPECTED}`,
    boot: {
      lan: 'good',
      files: PRIORITY,
      topic: false,
      config: { publish_frequency: 4, node_name: LONG_NAME, rest: { max_event_streams: 2000, max_connections: 2400 } },
    },
  },
  async (bench) => {
    // The service drops a client that takes nothing for 20 s of what waits in the service; the kernel, for 30 s of what waits in the kernel.
    const allGone = (streams: number, most: number): boolean => most > CLIENTS - 100 && streams < 50;
    const { sent, rest, mostStreams, text, recoverySeconds } = await stalledClients(bench, 400, allGone);
    bench.check('all are served at first', (sent.answers['200'] ?? 0) > CLIENTS - 100, sent);
    bench.check('and nearly all disconnected', rest.event_streams < 50, rest);
    return bench.finish({
      observed: `${mostStreams} served at a time, of which ${rest.event_streams} were left; ${text}`,
      recoverySeconds,
    });
  },
);
