import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { parseUdpTables, UdpOwners, type UdpSocket } from './udp-owners.ts';

const HEADER =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            \n';
const HEADER_6 =
  '  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n';
const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
/** A line in the kernel's format; addresses are four or sixteen little-endian octets in hexadecimal. */
const line = (address: string, port: number, uid: number, inode: number, remote = '0'.repeat(address.length), remotePort = 0): string =>
  `${String(inode % 100_000).padStart(5)}: ${address}:${hex(port)} ${remote}:${hex(remotePort)} 07 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 2 0000000000000000 0         \n`;
const ANY = '00000000';
const LOOPBACK = '0100007F';
const ANY_6 = '0'.repeat(32);
const MAPPED = '0000000000000000FFFF00000100007F';

t.test('the sockets on a port, regardless of their local address', async (t) => {
  const udp =
    HEADER +
    line(ANY, 7411, 1000, 11) +
    line(LOOPBACK, 40_000, 65_534, 12) +
    line('0200007F', 40_000, 0, 13) +
    line(ANY, 7400, 0, 14) +
    line(ANY, 7400, 1000, 15) +
    line(LOOPBACK, 53_000, 1001, 4_294_967_295, '3500007F', 53);
  const udp6 = HEADER_6 + line(ANY_6, 40_001, 1002, 21) + line(MAPPED, 40_000, 1003, 22);
  const table = Map.groupBy(parseUdpTables(udp + udp6), ({ port }) => port);
  const socketsOn = (...ports: number[]): UdpSocket[] => ports.flatMap((port) => table.get(port) ?? []);
  t.same(socketsOn(7411), [{ port: 7411, uid: 1000, isConnected: false, inode: 11 }]);
  t.same(
    socketsOn(40_000).map(({ uid }) => uid),
    [65_534, 0, 1003],
    'several addresses, and an IPv4 address that is mapped to IPv6',
  );
  t.same(
    socketsOn(40_001).map(({ uid }) => uid),
    [1002],
    'a socket for both protocols',
  );
  t.same(
    socketsOn(7400, 53_000).map(({ uid, inode }) => [uid, inode]),
    [
      [0, 14],
      [1000, 15],
      [1001, 4_294_967_295],
    ],
    'shared (SO_REUSEPORT), and connected',
  );
  t.same(socketsOn(53, 1, 65_535), [], 'the other end of a connected one is no socket of this machine');
  t.same(parseUdpTables(''), []);
  t.equal(table.size, 5, 'the heads are no sockets');
});

/** A /proc of a process in a user namespace (`map` null: the kernel has none), and the socket that returns the table with all users; null: there is none. */
async function place(t: Test, options: { map: string | null; own: string; outside?: string | null }) {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'self/net'), { recursive: true });
  const write = (own: string): void => writeFileSync(join(folder, 'self/net/udp'), HEADER + own);
  write(options.own);
  if (options.map !== null) writeFileSync(join(folder, 'self/uid_map'), options.map);
  const tableSocket = join(folder, 'table.sock');
  const state = { outside: options.outside ?? '', asked: 0 };
  if (options.outside !== undefined && options.outside !== null) {
    const server = createServer((connection) => {
      state.asked += 1;
      connection.on('error', () => undefined).end(HEADER + state.outside); // The reader may close it before the end.
    });
    server.listen(tableSocket);
    await once(server, 'listening');
    t.teardown(() => server.close());
  }
  return { owners: new UdpOwners({ proc: folder, tableSocket }), state, write };
}

const ALL_USERS = '         0          0 4294967295\n';
/** The uid_map with PrivateUsers=yes of systemd. */
const SANDBOX = '         0          0          1\n       997        997          1\n';

t.test('a kernel without user namespaces shows every user', async (t) => {
  const { owners } = await place(t, { map: null, own: line(ANY, 40_000, 65_534, 12) });
  t.same(await owners.usersOf([40_000]), [65_534]);
});

t.test('a process that sees every user does not use the table socket', async (t) => {
  const own = line(ANY, 7411, 1000, 11) + line(ANY, 40_000, 65_534, 12) + line(LOOPBACK, 53_000, 0, 13, '3500007F', 53);
  const { owners, state } = await place(t, { map: ALL_USERS, own, outside: own });
  t.same(await owners.usersOf([7411]), [1000]);
  t.same(await owners.usersOf([40_000]), [65_534], 'nobody is an ordinary user');
  t.same(await owners.usersOf([40_000, 7411, 7411]), [65_534, 1000]);
  t.equal(await owners.usersOf([40_000, 7412]), null, 'there is no socket on one of the ports');
  t.equal(await owners.usersOf([53_000]), null, 'a connected one is no participant’s');
  t.equal(state.asked, 0);
});

t.test('in a user namespace, unmapped users are read from the table socket', async (t) => {
  const own = line(ANY, 7411, 0, 11) + line(ANY, 7413, 997, 12) + line(ANY, 40_000, 65_534, 13);
  const outside = line(ANY, 7411, 0, 11) + line(ANY, 7413, 997, 12) + line(ANY, 40_000, 1000, 13);
  const { owners, state, write } = await place(t, { map: SANDBOX, own, outside });
  t.same(await owners.usersOf([7411, 7413]), [0, 997]);
  t.equal(state.asked, 0);
  t.same(await owners.usersOf([40_000, 7411]), [1000, 0]);
  t.equal(state.asked, 1);

  state.outside = '';
  t.same(await owners.usersOf([40_000]), [1000], 'a socket has one user as long as it is there');
  t.equal(state.asked, 1);

  write(line(ANY, 40_000, 65_534, 14));
  t.equal(await owners.usersOf([40_000]), null, 'another one, which has gone before the others were asked');
  write(line(ANY, 40_000, 65_534, 13) + line(LOOPBACK, 40_000, 65_534, 15));
  state.outside = line(ANY, 40_000, 1000, 13) + line(LOOPBACK, 40_000, 1001, 15);
  t.same(await owners.usersOf([40_000]), [1000, 1001], 'another one that has the port, too');
  t.equal(state.asked, 3);
});

t.test('the tables of TCP, which any user can make long, are not read', async (t) => {
  const own = line(ANY, 40_000, 65_534, 13);
  const tcp = HEADER.replace('ref pointer drops', ' '.repeat(17)) + line(LOOPBACK, 5000, 1001, 99).repeat(200_000);
  const { owners } = await place(t, { map: SANDBOX, own, outside: line(ANY, 40_000, 1000, 13) + HEADER_6 + tcp });
  t.same(await owners.usersOf([40_000]), [1000]);
});

t.test('without a table socket, unmapped users are unknown', async (t) => {
  const own = line(ANY, 7411, 0, 11) + line(ANY, 40_000, 65_534, 13);
  const { owners } = await place(t, { map: SANDBOX, own });
  t.equal(await owners.usersOf([40_000]), null);
  t.same(await owners.usersOf([7411]), [0]);
});

t.test('concurrent callers share one read, which began after their calls', async (t) => {
  const own = line(ANY, 40_000, 65_534, 13);
  const { owners, state } = await place(t, { map: SANDBOX, own, outside: line(ANY, 40_000, 1000, 13) });
  const answers = await Promise.all(Array.from({ length: 500 }, () => owners.usersOf([40_000])));
  t.ok(answers.every((users) => users?.[0] === 1000));
  t.ok(state.asked <= 2, `${state.asked} readings`);
});

t.test('a socket of this process, in the real table', async (t) => {
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const owners = new UdpOwners({ tableSocket: null });
  t.same(await owners.usersOf([socket.address().port]), [process.geteuid?.()]);
});
