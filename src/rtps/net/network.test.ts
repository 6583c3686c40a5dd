import { createSocket, Socket } from 'node:dgram';
import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { reserveDomain } from '../../../testkit/network/domain.ts';
import { until } from '../../../testkit/wait.ts';
import { MAX_DOMAIN, ports } from '../wire/protocol.ts';
import {
  allInterfaces,
  type Channel,
  type DatagramHandler,
  type Interface,
  isBroadcast,
  isInNetwork,
  UdpNetwork,
  usableInterfaces,
} from './network.ts';

const IGNORING: DatagramHandler = { onDatagram: () => {}, isFromProven: () => false, onDropped: () => {}, onProblem: () => {} };

const entry = (address: string, family: 'IPv4' | 'IPv6', internal: boolean, netmask = '255.255.255.0') =>
  ({ address, netmask, family, internal, mac: '', cidr: null, scopeid: 0 }) as never;

const MACHINE = {
  lo: [entry('127.0.0.1', 'IPv4', true, '255.0.0.0'), entry('::1', 'IPv6', true)],
  eth0: [entry('10.0.0.5', 'IPv4', false), entry('10.0.1.5', 'IPv4', false), entry('fe80::1', 'IPv6', false)],
  wlan0: [entry('192.168.0.7', 'IPv4', false)],
};

t.test('interfaces are chosen by the configuration', async (t) => {
  const all = allInterfaces(MACHINE);
  const names = (list: readonly Interface[]): string[] => list.map(({ name, address }) => `${name} ${address}`);
  t.same(names(all), ['lo 127.0.0.1', 'eth0 10.0.0.5', 'eth0 10.0.1.5', 'wlan0 192.168.0.7']);
  t.same(names(usableInterfaces(false, all)), ['eth0 10.0.0.5', 'eth0 10.0.1.5', 'wlan0 192.168.0.7'], 'all but loopback');
  t.same(names(usableInterfaces(true, all)), ['lo 127.0.0.1'], 'loopback alone');
  t.same(names(usableInterfaces(false, all.slice(0, 1))), ['lo 127.0.0.1'], 'loopback where there is no other');
  t.same(names(usableInterfaces(false, [])), ['lo 127.0.0.1'], 'and where there is none at all');
  const many = Array.from({ length: 100 }, (_, i) => ({
    name: `veth${i}`,
    address: `10.0.${i}.1`,
    netmask: '255.255.255.0',
    isLoopback: false,
  }));
  t.equal(usableInterfaces(false, many).length, 16);
});

t.test('networks', async (t) => {
  const own = (address: string, netmask: string): Interface => ({ name: '', address, netmask, isLoopback: false });
  t.ok(isInNetwork('10.0.0.255', own('10.0.0.1', '255.255.255.0')));
  t.notOk(isInNetwork('10.0.1.1', own('10.0.0.1', '255.255.255.0')));
  t.ok(isInNetwork('192.168.7.9', own('192.168.4.1', '255.255.252.0')));
  t.ok(isInNetwork('1.2.3.4', own('200.0.0.1', '0.0.0.0')));
  t.notOk(isInNetwork('10.0.0.2', own('10.0.0.1', '255.255.255.255')));
});

t.test('broadcast addresses', async (t) => {
  const own = (netmask: string): Interface => ({ name: 'eth0', address: '10.0.1.5', netmask, isLoopback: false });
  t.same(
    ['10.0.1.0', '10.0.1.255', '10.0.1.7', '10.0.0.255'].map((address) => isBroadcast(address, own('255.255.255.0'))),
    [true, true, false, false],
  );
  t.same(
    ['10.0.0.0', '10.0.3.255', '10.0.1.255', '10.0.2.0'].map((address) => isBroadcast(address, own('255.255.252.0'))),
    [true, true, false, false],
  );
  for (const netmask of ['255.255.255.254', '255.255.255.255'])
    t.same(
      ['10.0.1.4', '10.0.1.5'].map((address) => isBroadcast(address, own(netmask))),
      [false, false],
      'there is none',
    );
});

t.test('ports of every domain are ports', async (t) => {
  t.equal(ports.metaMulticast(0), 7400);
  t.equal(ports.metaUnicast(0, 3), 7416);
  t.equal(ports.userUnicast(1, 0), 7661);
  t.ok(ports.userUnicast(MAX_DOMAIN, 0) < 65536);
});

async function opened(
  t: Test,
  network: UdpNetwork,
  domain: number,
): Promise<{ ports: Readonly<Record<Channel, number>>; received: { text: string; viaMulticast: boolean }[] }> {
  const received: { text: string; viaMulticast: boolean }[] = [];
  const bound = await network.open(domain, {
    ...IGNORING,
    onDatagram: (datagram, _address, viaMulticast) => received.push({ text: String(datagram), viaMulticast }),
    onProblem: (message, fields) => t.comment(`${message} ${JSON.stringify(fields)}`),
  });
  t.teardown(() => network.close());
  return { ports: bound, received };
}

t.test('two participants of a machine bind neighbouring ports and receive datagrams there', async (t) => {
  const domain = await reserveDomain(t);
  const [a, b] = [new UdpNetwork(true), new UdpNetwork(true)];
  const first = await opened(t, a, domain);
  const second = await opened(t, b, domain);
  t.ok(second.ports.meta > first.ports.meta);
  t.equal(first.ports.user, first.ports.meta + 1);
  t.equal((first.ports.meta - ports.metaUnicast(domain, 0)) % 2, 0);
  a.send('meta', Buffer.from('meta'), '127.0.0.1', second.ports.meta, false);
  a.send('user', Buffer.from('user'), '127.0.0.1', second.ports.user, false);
  a.send('user', Buffer.from('unreachable'), '127.0.0.1', second.ports.user, true);
  await until('all three datagrams arrived', () => second.received.length === 3);
  t.same(second.received.map(({ text }) => text).sort(), ['meta', 'unreachable', 'user']);
  t.same(first.received, []);
  a.close();
  a.send('user', Buffer.from('after'), '127.0.0.1', second.ports.user, false);
  const again = await opened(t, a, domain);
  t.same(again.ports, first.ports, 'closed ports are free');
});

t.test('the port of the group receives what is sent to the group, and nothing else', async (t) => {
  const domain = await reserveDomain(t);
  const network = new UdpNetwork(true);
  const { received } = await opened(t, network, domain);
  const [loopback] = network.interfaces() as [Interface];
  network.join([loopback]);
  network.send('meta', Buffer.from('to one host'), '127.0.0.1', ports.metaMulticast(domain));
  network.multicast(Buffer.from('to the group'), loopback);
  await until('the datagram to the group arrived', () => received.length > 0);
  t.same(received, [{ text: 'to the group', viaMulticast: true }]);
});

t.test('joining the group on a missing interface is logged, not an error', async (t) => {
  const network = new UdpNetwork(true);
  const problems: string[] = [];
  await network.open(await reserveDomain(t), { ...IGNORING, onProblem: (message) => problems.push(message) });
  t.teardown(() => network.close());
  const gone: Interface = { name: 'eth9', address: '10.255.255.254', netmask: '255.255.255.0', isLoopback: false };
  network.join([gone]);
  network.join([gone]);
  t.same(problems, ['cannot join the multicast group'], 'once');
  network.multicast(Buffer.from('x'), gone);
  network.join([]);
});

t.test('own addresses', async (t) => {
  const network = new UdpNetwork(false);
  network.interfaces();
  t.ok(network.isOwn('127.0.0.1'));
  t.ok(network.isOwn('127.1.2.3'));
  t.notOk(network.isOwn('203.0.113.1'));
  for (const { address } of allInterfaces()) t.ok(network.isOwn(address));
});

t.test('when the interfaces cannot be read, the former ones are used, and it is logged once', async (t) => {
  let all: (() => Interface[]) | null = () => allInterfaces(MACHINE);
  const network = new UdpNetwork(false, () => {
    // No descriptor is free, and reading the interfaces takes a socket.
    if (!all) throw Object.assign(new Error('A system error occurred'), { code: 'ERR_SYSTEM_ERROR' });
    return all();
  });
  t.teardown(() => network.close());
  const problems: string[] = [];
  await network.open(await reserveDomain(t), { ...IGNORING, onProblem: (message) => problems.push(message) });
  const before = network.interfaces();
  t.equal(before.length, 3);
  all = null;
  t.same(network.interfaces(), before);
  t.same(network.interfaces(), before);
  t.ok(network.isOwn('10.0.1.5'));
  const turn = (): Promise<unknown> => new Promise((done) => setImmediate(done));
  await turn();
  t.same(problems, ['cannot read the network interfaces']);
  all = () => allInterfaces({ lo: MACHINE.lo });
  t.same(
    network.interfaces().map(({ name }) => name),
    ['lo'],
  );
  all = null;
  network.interfaces();
  await turn();
  t.equal(problems.length, 2, 'a later failure is logged again');
});

t.test('without a free port `open` rejects and leaves no socket open', async (t) => {
  await reserveDomain(t, [MAX_DOMAIN]);
  const taken: Socket[] = [];
  t.teardown(() => {
    for (const socket of taken) socket.close();
  });
  // The last domain has few ports.
  const [first, last] = [ports.metaUnicast(MAX_DOMAIN, 0), 65535];
  for (let port = first; port <= last; port += 2) {
    const socket = createSocket('udp4');
    taken.push(socket);
    await new Promise<void>((done) => socket.once('error', () => done()).bind(port, '127.0.0.1', () => done()));
  }
  const network = new UdpNetwork(true);
  await t.rejects(network.open(MAX_DOMAIN, IGNORING), { message: /no free port .* domain 232/ });
  await t.rejects(network.open(MAX_DOMAIN, IGNORING), { message: /no free port/ }, 'again');
});

/** Whether `close` was called; the address of a socket that is open and not bound is an error of its own. */
function isClosed(socket: Socket): boolean {
  try {
    socket.address();
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_SOCKET_DGRAM_NOT_RUNNING';
  }
}

t.test('no socket is left open by a port that is in use, nor by an error', async (t) => {
  const domain = await reserveDomain(t);
  const taken = [ports.metaUnicast(domain, 0), ports.userUnicast(domain, 1)].map((port) => createSocket('udp4').bind(port, '127.0.0.1'));
  t.teardown(() => {
    for (const socket of taken) socket.close();
  });
  await Promise.all(taken.map((socket) => new Promise((done) => socket.once('listening', done))));
  const { bind } = Socket.prototype;
  let sockets: Socket[] = [];
  let failing = Number.POSITIVE_INFINITY;
  const mocked = mock.method(Socket.prototype, 'bind', function (this: Socket, ...given: unknown[]) {
    sockets.push(this);
    if (sockets.length < failing) return bind.apply(this, given as never);
    process.nextTick(() => this.emit('error', Object.assign(new Error('bind EMFILE'), { code: 'EMFILE' })));
    return this;
  });
  t.teardown(() => mocked.mock.restore());
  const network = new UdpNetwork(true);
  t.equal((await network.open(domain, IGNORING)).meta, ports.metaUnicast(domain, 2), 'the first two participant indexes are in use');
  t.equal(sockets.filter((socket) => !isClosed(socket)).length, 4, 'the group, discovery, samples, and hosts that may be unreachable');
  const needed = sockets.length;
  network.close();
  t.ok(sockets.every(isClosed));
  for (failing = 1; failing <= needed; failing += 1) {
    sockets = [];
    await t.rejects(network.open(domain, IGNORING), { code: 'EMFILE' });
    t.equal(sockets.length, failing);
    t.ok(sockets.every(isClosed), `after an error of socket ${failing}`);
  }
});
