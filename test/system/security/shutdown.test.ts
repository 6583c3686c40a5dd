import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { SAFE_SHUTDOWN } from '../../../src/ros/interfaces.generated.ts';
import { participantPayload } from '../../../src/rtps/discovery/discovery-data.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { entity, message, sn, submessage, u16, u32 } from '../../../src/rtps/testing/octets.ts';
import { encode } from '../../../src/rtps/wire/cdr.ts';
import { ENTITY, entityOf, type Guid, prefixOf, VENDOR } from '../../../src/rtps/wire/protocol.ts';
import { ShutdownClient, sharedProgram } from '../../../testkit/dds/shutdown-client.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

// Who may request a safe shutdown, tested with real users of a host and with forged datagrams. Nothing is ever powered off: it is a dry
// run.

t.jobs = 1;
t.setTimeout(600_000);
const skip = networkUnavailable();

const ROOT_USER = 0;
const NOBODY = 65_534;
/** Users of the test hosts, by number. */
const USERS = { anna: 70_001, bert: 70_002, carl: 70_003, dora: 70_004 } as const;
const PASSWD = ['root:x:0:0::/:', 'nobody:x:65534:65534::/:', ...Object.entries(USERS).map(([name, uid]) => `${name}:x:${uid}:${uid}::/:`)];
const GROUP = ['root:x:0:', 'nogroup:x:65534:', 'sudo:x:27:bert', 'edge-health:x:70100:anna'];
const META_PORT = 7410;
const USER_PORT = 7411;
const MULTICAST_PORT = 7400;

/** Sends datagrams as a user can: from any port that it can bind, and from any address of the machine. */
const SENDER = `
import json, socket, struct, sys
o = json.loads(sys.argv[1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(tuple(o['bind']))
control = [(socket.IPPROTO_IP, 8, struct.pack('=I4s4s', 0, socket.inet_aton(o['source']), bytes(4)))] if o['source'] else []
for datagram in o['datagrams']: s.sendmsg([bytes.fromhex(datagram)], control, 0, ('127.0.0.1', o['to']))
if o['held']:
  print('sent', flush=True)
  sys.stdin.read()
`;
/** Sends a datagram with a forged source address and port, as root from another machine. */
const FORGER = `
import json, socket, struct, sys
o = json.loads(sys.argv[1])
d = bytes.fromhex(o['datagram'])
udp = struct.pack('!HHHH', o['port'], o['to'], 8 + len(d), 0) + d
ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(o['from']), socket.inet_aton(o['at']))
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
s.sendto(ip + udp, (o['at'], 0))
`;
/** Holds ports until its input is closed. */
const HOLDER = `
import json, socket, sys
held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for port in json.loads(sys.argv[1])]
for s, port in zip(held, json.loads(sys.argv[1])): s.bind(('127.0.0.1', port))
print('held', flush=True)
sys.stdin.read()
`;
const PYTHON = '/usr/bin/python3';

interface Sending {
  readonly datagrams: readonly Buffer[];
  readonly to?: number;
  readonly bind?: readonly [address: string, port: number];
  /** The source address of the datagrams, if it differs from that of the socket. */
  readonly source?: string;
}

/** Sends as the user nobody, from a socket that is closed at once. */
function sendAsNobody(host: Host, { datagrams, to = META_PORT, bind = ['0.0.0.0', 0], source = '' }: Sending): void {
  const options = { datagrams: datagrams.map((datagram) => datagram.toString('hex')), to, bind, source, held: false };
  const [program, args] = host.command('setpriv', [
    ...[`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'],
    ...[PYTHON, '-c', SENDER, JSON.stringify(options)],
  ]);
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`not sent: ${stderr}`);
}

const asked = (requested_by: string): Buffer => encode(SAFE_SHUTDOWN.request, { reason: 'EMERGENCY', requested_by, timeout: 5 });

/** A request of a participant that does not exist, in one datagram with everything it needs: an announcement, a writer, a sample. */
function forgedRequest(requestedBy: string, locator: { address: string; port: number }): Buffer {
  const stranger = new ForgedParticipant(77, locator);
  const body = asked(requestedBy);
  const parts = [
    stranger.announcement('stranger'),
    stranger.endpoint(true, 1, { topic: 'rq/safe_shutdownRequest', type: SAFE_SHUTDOWN.request.ddsName }),
    stranger.data(0x103, Buffer.concat([body.subarray(0, 4), Buffer.alloc(16, 1), body.subarray(4)])),
  ];
  return Buffer.concat(parts.map((part, i) => (i === 0 ? part : part.subarray(20))));
}

/** A request in the name of a real client. */
function requestOf(writer: Guid, number: number, requestedBy: string): Buffer {
  const parts = [u16(0), u16(16), entity(0), entity(entityOf(writer)), sn(number), asked(requestedBy)];
  return message(prefixOf(writer), submessage(0x15, parts, { flags: 4 }));
}

/** An announcement in the name of a real participant, with other addresses than its own. */
function announcementOf(writer: Guid, at: { readonly address: string; readonly port: number }): Buffer {
  const prefix = prefixOf(writer);
  const known = { prefix, vendor: VENDOR.CYCLONE_DDS, domain: 0, name: 'moved', userData: '', leaseSeconds: 100 };
  const payload = participantPayload({ ...known, metaUnicast: [at], userUnicast: [at] }, null);
  return message(prefix, submessage(0x15, [u16(0), u16(16), entity(0), entity(ENTITY.SPDP_WRITER), sn(9), payload], { flags: 4 }));
}

function heartbeatOf(writer: Guid, first: number, last: number, count: number): Buffer {
  return message(prefixOf(writer), submessage(0x07, [entity(0), entity(entityOf(writer)), sn(first), sn(last), u32(count)]));
}

/** A host with users of its own: `ip netns exec` puts these files in the place of those of the machine. */
function withUsers(t: Test, host: Host): Host {
  const folder = `/etc/netns/${host.name}`;
  mkdirSync(folder, { recursive: true });
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(`${folder}/passwd`, `${PASSWD.join('\n')}\n`);
  writeFileSync(`${folder}/group`, `${GROUP.join('\n')}\n`);
  return host;
}

/** The ports of a user's sockets that are bound to 127.0.0.1. */
function portsAtLoopback(host: Host, uid: number): number[] {
  const rows = host.exec('cat', '/proc/net/udp').matchAll(/: 0100007F:([0-9A-F]{4})(?: +\S+){5} +(\d+) /g);
  return [...rows].filter(([, , owner]) => owner === String(uid)).map(([, port = '']) => Number.parseInt(port, 16));
}

type Shutdown = StatusDocument['shutdown'];

class Site {
  readonly host: Host;
  readonly service: HostService;
  readonly #shared: readonly [string, string];

  private constructor(host: Host, service: HostService, shared: readonly [string, string]) {
    this.host = host;
    this.service = service;
    this.#shared = shared;
  }

  static async start(
    t: Test,
    safeShutdown: object = {},
    attach: (host: Host) => void = () => undefined,
    network = newNetwork(t),
  ): Promise<Site> {
    const host = withUsers(t, network.host());
    attach(host);
    const config = { safe_shutdown: { action: 'dry-run', max_requests_per_minute: 600, ...safeShutdown }, log: { level: 'debug' } };
    const service = await HostService.start(host, temporaryFolder(t), { config });
    t.teardown(() => service.end());
    await service.untilGet<StatusDocument>('/status', ({ ros }) => ros.transport === 'embedded');
    return new Site(host, service, await sharedProgram(t));
  }

  client(uid: number, service?: string): Promise<ShutdownClient> {
    return ShutdownClient.start(this.host, uid, this.#shared, service);
  }

  async shutdown(): Promise<Shutdown> {
    return (await this.service.get<StatusDocument>('/status')).shutdown;
  }

  async completed(): Promise<Shutdown> {
    return (await this.service.untilGet<StatusDocument>('/status', ({ shutdown }) => shutdown.state === 'completed')).shutdown;
  }
}

function newNetwork(t: Test): Network {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network;
}

t.test('root, members of two groups and listed users are accepted; others are refused and recorded', { skip }, async (t) => {
  const site = await Site.start(t, { allow_users: ['carl'] });
  for (const [uid, name] of [
    [ROOT_USER, 'root'],
    [USERS.anna, 'anna'],
    [USERS.bert, 'bert'],
    [USERS.carl, 'carl'],
  ] as const) {
    const client = await site.client(uid);
    const { message, ms, success } = await client.call();
    t.equal(success, true, `${name}: ${message}`);
    t.comment(`${name} was answered in ${ms.toFixed(0)} ms`);
    const { requests } = await site.completed();
    t.match(requests[0], { address: '127.0.0.1', port: Number, user: name, outcome: 'completed' });
    await client.end();
  }
  for (const [uid, name] of [
    [NOBODY, 'nobody'],
    [USERS.dora, 'dora'],
    [70_999, '70999'],
  ] as const) {
    const client = await site.client(uid);
    const { message, ms, success } = await client.call();
    t.equal(success, false, name);
    t.match(message, new RegExp(`^refused: the user ${name} may not request a safe shutdown; .*safe_shutdown\\.allow_users$`));
    t.comment(`${name} was refused in ${ms.toFixed(0)} ms`);
    const { requests } = await site.shutdown();
    t.match(requests[0], { address: '127.0.0.1', port: Number, user: name, outcome: 'refused' });
    t.match(site.service.log, new RegExp(`safe shutdown refused .* address=127\\.0\\.0\\.1 port=${requests[0]?.port} user=${name} `));
    await client.end();
  }
  t.match(await site.shutdown(), { accepted: 4, refused: 3 });
});

t.test('one datagram of the user nobody powers nothing off, whatever port it comes from', { skip }, async (t) => {
  const site = await Site.start(t);
  // Programs of root that are on the graph: their ports are what an attacker would use.
  const root = await site.client(ROOT_USER);
  const { message, success } = await root.call();
  t.ok(success, message);
  await site.completed();
  const ports = portsAtLoopback(site.host, ROOT_USER);
  t.ok(ports.length >= 2, 'sockets of root that are bound to one address');
  const victim = { address: '127.0.0.1', port: ports[0] as number };
  const attacks: Readonly<Record<string, Sending>> = {
    'from a port of its own': { datagrams: [forgedRequest('attack 1', { address: '127.0.0.1', port: 7500 })] },
    'with the addresses of a participant of root': { datagrams: [forgedRequest('attack 2', victim)] },
    'from the port of all participants': { datagrams: [forgedRequest('attack 3', victim)], bind: ['0.0.0.0', MULTICAST_PORT] },
    'from a port of root, by an address beside it': {
      datagrams: [forgedRequest('attack 4', victim)],
      bind: ['127.0.0.2', victim.port],
      source: '127.0.0.1',
    },
  };
  for (const [name, sending] of Object.entries(attacks)) {
    t.comment(`${name}: ${sending.datagrams[0]?.length} octets`);
    sendAsNobody(site.host, sending);
    sendAsNobody(site.host, { ...sending, to: USER_PORT });
  }

  // A participant of the user nobody, which receives what is sent to it, and sends from a port of root.
  const nobody = await site.client(NOBODY);
  t.match(await nobody.call({ requested_by: 'attack 5' }), { success: false, message: /the user nobody/ });
  for (const port of ports) {
    const datagrams = [requestOf(nobody.writer, 2, 'attack 6')];
    sendAsNobody(site.host, { datagrams, bind: ['127.0.0.2', port], source: '127.0.0.1', to: USER_PORT });
  }
  // The same participant announces that it receives where a participant of root does.
  const moving = await site.client(NOBODY);
  t.match(await moving.call({ requested_by: 'attack 7' }), { success: false, message: /the user nobody/ });
  for (const port of ports) {
    sendAsNobody(site.host, { datagrams: [announcementOf(moving.writer, { address: '127.0.0.1', port })] });
    const datagrams = [requestOf(moving.writer, 2, 'attack 8')];
    sendAsNobody(site.host, { datagrams, bind: ['127.0.0.2', port], source: '127.0.0.1', to: USER_PORT });
  }
  // A participant of the user nobody that vanished without a goodbye, and whose ports root has bound since.
  const gone = await site.client(NOBODY);
  t.match(await gone.call({ requested_by: 'attack 9' }), { success: false, message: /the user nobody/ });
  const before = portsAtLoopback(site.host, NOBODY);
  gone.signal('SIGKILL');
  await gone.ended;
  const freed = before.filter((port) => !portsAtLoopback(site.host, NOBODY).includes(port));
  t.ok(freed.length >= 2, 'its ports are free');
  const heir = site.host.spawn(PYTHON, ['-c', HOLDER, JSON.stringify(freed)], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(heir.stdout as NodeJS.ReadableStream, 'data');
  sendAsNobody(site.host, {
    datagrams: [requestOf(gone.writer, 2, 'attack 10')],
    bind: ['127.0.0.2', freed[0] as number],
    source: '127.0.0.1',
    to: USER_PORT,
  });
  await site.service.until(() => site.service.log.includes('requested_by="attack 10"'), 60);
  heir.stdin?.end();
  const last = await nobody.call({ requested_by: 'last' });
  t.match(last, { success: false, message: /the user nobody/ });
  const { accepted, requests, state } = await site.shutdown();
  t.same([accepted, state], [1, 'completed'], 'what root asked for and nothing else');
  t.ok(requests.every(({ outcome, requested_by }) => outcome === (requested_by === 'test' ? 'completed' : 'refused')));
  const borrowed = requests.filter(({ requested_by }) => requested_by === 'attack 6');
  t.ok(borrowed.length > 0, 'they were read');
  t.ok(
    borrowed.every(({ user }) => user?.split(', ').includes('nobody')),
    JSON.stringify(borrowed),
  );
  await nobody.end();
  await root.end();
});

t.test('forged numbers do not keep a request of root from a response', { skip }, async (t) => {
  const site = await Site.start(t);
  const root = await site.client(ROOT_USER);
  t.match(await root.call({ reason: 'BOREDOM' }), { success: false, message: /reason: found/ });
  const datagrams = [
    heartbeatOf(root.writer, 2 ** 40, 2 ** 40, 9001),
    heartbeatOf(root.writer, 2 ** 40, 2 ** 40 + 1, 9002),
    ...[2, 3, 4, 2 ** 41].map((number) => requestOf(root.writer, number, `forged ${number}`)),
  ];
  sendAsNobody(site.host, { datagrams, to: USER_PORT });
  // The responses to requests forged in its name go to this client, too: the service reports which one was accepted.
  await root.call({ requested_by: 'root' });
  const { accepted, requested_by, requests } = await site.completed();
  t.same([accepted, requested_by], [1, 'root']);
  t.equal(requests.filter(({ requested_by: by, outcome }) => by.startsWith('forged') && outcome !== 'refused').length, 0);
  await root.end();
});

t.test('the forged address of an authorised host is not enough', { skip }, async (t) => {
  const network = newNetwork(t);
  const segment = network.segment();
  const [friend, stranger] = [network.host(), network.host()];
  const { address: at } = segment.attach(stranger);
  const { address } = segment.attach(friend);
  let own = '';
  const site = await Site.start(
    t,
    { allow_from: [address] },
    (host) => {
      own = segment.attach(host).address;
    },
    network,
  );
  const datagram = forgedRequest('forged', { address, port: 7410 }).toString('hex');
  for (const to of [META_PORT, USER_PORT]) {
    const options = { datagram, from: address, port: 40_000, at: own, to };
    stranger.exec(PYTHON, '-c', FORGER, JSON.stringify(options));
  }
  await site.service.until(() => site.service.log.includes('peer=stranger'), 60);
  // A request of this host, which was sent after it, has received its response.
  const root = await site.client(ROOT_USER);
  t.match(await root.call({ reason: 'BOREDOM' }), { success: false, message: /reason: found/ });
  const { accepted, requests, state } = await site.shutdown();
  t.same([accepted, state], [0, 'none']);
  t.ok(requests.every(({ address: from, outcome }) => outcome === 'refused' && from !== at));
  await root.end();
});
