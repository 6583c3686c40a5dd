import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { MULTICAST_GROUP, ports } from '../../../src/rtps/wire/protocol.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { RawProgram } from '../../../testkit/network/raw-program.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

/** Floods of a whole service, which continues to receive every status of its robots and discovers new ones. */

t.setTimeout(300_000);

const [META, USER, GROUP] = [ports.metaUnicast(0, 0), ports.userUnicast(0, 0), ports.metaMulticast(0)];
const HERTZ = 2000;
const SECONDS = 12;
const TICK_MS = 5;

/** The statuses that the service sends to a client of /events on its own machine, as they arrive. */
function statusesAt(host: Host): HealthStatus[] {
  const statuses: HealthStatus[] = [];
  const read =
    "fetch('http://127.0.0.1:5000/events?events=health').then(async ({ body }) => { for await (const part of body) process.stdout.write(part); })";
  const child = host.spawn(process.execPath, ['-e', read], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('data: ')) statuses.push(JSON.parse(line.slice(6)) as HealthStatus);
    });
  return statuses;
}

interface Scene {
  readonly service: HostService;
  readonly robots: Host;
  readonly attacker: Host;
  readonly address: string;
  readonly attackerAddress: string;
  /** The numbers of the statuses received of a robot. */
  readonly numbersOf: (name: string) => number[];
}

async function scene(t: Test): Promise<Scene> {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, robots, attacker] = [network.host(), network.host(), network.host()];
  const { address } = segment.attach(brain);
  segment.attach(robots);
  const attackerAddress = segment.attach(attacker).address;
  const service = await HostService.start(brain, temporaryFolder(t));
  const statuses = statusesAt(brain);
  const numbersOf = (name: string): number[] =>
    statuses.filter(({ node_name }) => node_name === name).map(({ cpu_percent }) => cpu_percent ?? 0);
  return { service, robots, attacker, address, attackerAddress, numbersOf };
}

/** Starts a robot whose statuses are numbered from 1. */
async function robot(host: Host, name: string, hz: number): Promise<GraphNode> {
  const node = await GraphNode.start(host, { namespace: `/${name}`, localNode: name, observe: false });
  node.stream({ hz, count: 0 });
  return node;
}

/** Sends 2,000 datagrams a second, as far as this machine can. Returns how many it has sent. */
async function send(sender: RawProgram, datagram: (number: number) => string): Promise<number> {
  const begun = performance.now();
  let sent = 0;
  while (performance.now() - begun < SECONDS * 1000) {
    for (const due = ((performance.now() - begun) * HERTZ) / 1000; sent < due; sent += 1) sender.write(datagram(sent));
    await new Promise((later) => setTimeout(later, TICK_MS));
  }
  sender.end();
  await sender.read();
  return sent;
}

const announcement = (number: number, address: string): string =>
  new ForgedParticipant(number, { address, port: META }).announcement(`flood${number}`).toString('hex');

const FLOODS: Readonly<Record<string, (scene: Scene) => Promise<number>>> = {
  'new GUIDs from one address, by unicast to both ports and by multicast': ({ attacker, address, attackerAddress }) =>
    send(new RawProgram(attacker, 'send'), (number) => {
      const [to, port] = [
        [address, META],
        [address, USER],
        [MULTICAST_GROUP, GROUP],
      ][number % 3] as [string, number];
      return `${attackerAddress} ${to} ${port} ${announcement(number, attackerAddress)}`;
    }),
  'new GUIDs, each from another forged address': ({ attacker, address }) =>
    send(new RawProgram(attacker, 'send'), (number) => {
      const source = `10.78.${(number >> 8) & 255}.${number & 255}`;
      return `${source} ${address} ${META} ${announcement(number, source)}`;
    }),
  'samples, heartbeats and requests of a proven participant': async ({ attacker, address }) => {
    const program = join(ROOT, 'testkit/dds/attacker-program.ts');
    const child = attacker.spawn(process.execPath, [program, 'flood', address], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    for await (const text of child.stdout ?? []) output += String(text);
    return (JSON.parse(output.split('\n')[1] ?? '') as { sent: number }).sent;
  },
};

for (const [what, flood] of Object.entries(FLOODS)) {
  t.test(what, { skip: networkUnavailable() }, async (t) => {
    const all = await scene(t);
    const { service, robots, numbersOf } = all;
    const known = { slow: await robot(robots, 'slow', 1), fast: await robot(robots, 'fast', 10) };
    await until('both robots are known', () => numbersOf('slow').length > 2 && numbersOf('fast').length > 20);
    const flooded = flood(all);
    await new Promise((later) => setTimeout(later, 3000));
    const late = await robot(robots, 'late', 2);
    await until('the new robot is known', () => numbersOf('late').length > 0);
    // A new robot sends its last ten statuses: the first one received shows how many it had sent before it was discovered.
    t.equal(numbersOf('late')[0], 1, 'a new robot is discovered within five seconds');
    t.comment(`${await flooded} datagrams sent`);
    const { peers } = (await service.get<StatusDocument>('/status')).ros;
    t.ok((peers ?? 0) > 100 || numbersOf('flood').length > 0, 'the flood has arrived');
    const alerts = await service.get<{ readonly data: readonly { readonly alert_id: string }[] }>('/alerts');
    t.same(
      alerts.data.filter(({ alert_id }) => /slow|fast|late/.test(alert_id)),
      [],
      'no alert about a robot',
    );
    for (const [name, node] of Object.entries({ ...known, late })) {
      const last = await node.endStreams();
      await until(`the last status of ${name}`, () => numbersOf(name).at(-1) === last);
      const numbers = numbersOf(name);
      t.same(
        numbers,
        numbers.map((_, i) => (numbers[0] ?? 0) + i),
        `${numbers.length} statuses of ${name}: none is lost`,
      );
    }
    await service.end();
  });
}
