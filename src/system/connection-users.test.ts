import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { connectionUsers } from './connection-users.ts';

/** Lines in the kernel's format; addresses are 32-bit words, little-endian, in hexadecimal. */
const line = (from: string, to: string, uid: number, inode = 7): string =>
  `   1: ${from} ${to} 01 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 1 0000000000000000 20 4 30 10 -1\n`;
const LOOPBACK = '0100007F';
const LOOPBACK_6 = '00000000000000000000000001000000';
const MAPPED = '0000000000000000FFFF00000100007F';
/** fe80::1 */
const LINK_LOCAL = '000080FE000000000000000001000000';
const REST = '1388';

/** /proc and /etc of a machine; `outside`: the tables that the helper returns, null if there is no helper. */
async function place(t: Test, options: { uidMap?: string; tcp?: string; tcp6?: string; outside?: string | null }) {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'self/net'), { recursive: true });
  writeFileSync(join(folder, 'self/uid_map'), options.uidMap ?? '0 0 4294967295\n');
  writeFileSync(join(folder, 'self/net/tcp'), options.tcp ?? '');
  writeFileSync(join(folder, 'self/net/tcp6'), options.tcp6 ?? '');
  writeFileSync(join(folder, 'passwd'), 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n');
  writeFileSync(join(folder, 'subuid'), 'ann:100000:65536\n1000:300000:10\n');
  const tables = join(folder, 'tables.sock');
  const { outside } = options;
  if (typeof outside === 'string') {
    const server = createServer((socket) => socket.end(outside)).listen(tables);
    await once(server, 'listening');
    t.teardown(() => server.close());
  }
  return { folder, users: connectionUsers({ proc: folder, etc: folder, tables }) };
}

/** The service's end of a connection from a port. */
const ends = (remoteAddress: string, remotePort: number, localAddress = remoteAddress): Socket =>
  ({ localAddress, localPort: 5000, remoteAddress, remotePort }) as Socket;

t.test('the user of the other end, by both addresses and both ports', async (t) => {
  const { users: find } = await place(t, {
    tcp:
      line(`${LOOPBACK}:${REST}`, `${LOOPBACK}:0400`, 4) +
      line(`${LOOPBACK}:0400`, `${LOOPBACK}:${REST}`, 1000) +
      line(`0200007F:0400`, `0200007F:${REST}`, 0) +
      line(`${LOOPBACK}:0402`, `${LOOPBACK}:${REST}`, 0, 0),
    tcp6:
      line(`${LOOPBACK_6}:0400`, `${LOOPBACK_6}:${REST}`, 2000) +
      line(`${MAPPED}:0401`, `${MAPPED}:${REST}`, 65_534) +
      line(`${LINK_LOCAL}:0400`, `${LINK_LOCAL}:${REST}`, 1000),
  });
  const connections = [
    ends('127.0.0.1', 1024),
    ends('::ffff:127.0.0.1', 1024),
    ends('127.0.0.2', 1024),
    ends('::1', 1024),
    ends('::ffff:127.0.0.1', 1025),
    ends('fe80::1%eth0', 1024),
    ends('127.0.0.1', 1026),
    ends('127.0.0.1', 1027),
    { ...ends('127.0.0.1', 1024), localPort: 5001 },
    {} as Socket,
  ];
  t.same(await find(connections), ['ann', 'ann', 'root', '2000', '65534', 'ann', null, null, null, null]);
});

t.test('subordinate ids count as their user', async (t) => {
  const uids = [99_999, 100_000, 165_535, 165_536, 300_009];
  const tcp = uids.map((uid, n) => line(`${LOOPBACK}:040${n}`, `${LOOPBACK}:${REST}`, uid)).join('');
  const { users: find } = await place(t, { tcp });
  t.same(await find(uids.map((_, n) => ends('127.0.0.1', 1024 + n))), ['99999', 'ann', 'ann', '165536', 'ann']);
});

t.test('in a user namespace, other users are read from the helper; without it they are unknown', async (t) => {
  const uidMap = '         0          0          1\n       997        997          1\n';
  const tcp = (uid: number): string =>
    line(`${LOOPBACK}:0400`, `${LOOPBACK}:${REST}`, 0) + line(`${LOOPBACK}:0401`, `${LOOPBACK}:${REST}`, uid);
  const connections = [ends('127.0.0.1', 1024), ends('127.0.0.1', 1025)];
  t.same(await (await place(t, { uidMap, tcp: tcp(65_534), outside: tcp(1000) })).users(connections), ['root', 'ann']);
  t.same(
    await (await place(t, { uidMap, tcp: tcp(65_534), outside: tcp(65_534) })).users(connections),
    ['root', '65534'],
    'nobody is a user',
  );
  t.same(await (await place(t, { uidMap, tcp: tcp(65_534), outside: null })).users(connections), ['root', null]);
});

t.test('the user of a connection of this process, in the real tables', async (t) => {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const host of ['127.0.0.1', '::1']) {
    const client = connect({ host, port });
    const [socket] = (await once(server, 'connection')) as [Socket];
    const [user] = await connectionUsers()([socket]);
    t.ok(user !== null && user !== undefined, `${host}: ${user}`);
    client.destroy();
    socket.destroy();
  }
  server.close();
});

t.test('the user at the other end of a Unix socket', async (t) => {
  const path = join(temporaryFolder(t), 'x.sock');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const client = connect(path);
  const [socket] = (await once(server, 'connection')) as [Socket];
  const find = await place(t, {});
  writeFileSync(join(find.folder, 'passwd'), `me:x:${process.geteuid?.()}:0::/:/bin/sh\n`);
  t.same(await find.users([socket]), ['me']);
  client.destroy();
  socket.destroy();
  server.close();
  t.same(await find.users([socket]), [null], 'closed');
});
