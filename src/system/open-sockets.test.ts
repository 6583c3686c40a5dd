import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { openSockets } from './open-sockets.ts';

t.test('lists the UDP ports and listening Unix sockets of this process while they are open', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'a socket');
  const server = createServer().listen(path);
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  const socket6 = createSocket('udp6').bind(0);
  await Promise.all([once(server, 'listening'), once(socket, 'listening'), once(socket6, 'listening')]);
  t.teardown(() => server.close());
  const { port } = socket.address();
  const found = openSockets();
  t.match(
    found.filter((one) => one.protocol === 'udp' && one.port === port),
    [{ address: '127.0.0.1' }],
  );
  t.match(
    found.filter((one) => one.protocol === 'udp' && one.port === socket6.address().port),
    [{ address: '::' }],
  );
  t.ok(found.some((one) => one.protocol === 'unix' && one.path === path));
  socket.close();
  socket6.close();
  await once(socket6, 'close');
  t.notOk(openSockets().some((one) => one.protocol === 'udp' && one.port === port));
});

t.test('sockets of other processes, connected ones and those without a path are not listed', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['fd', 'net']) mkdirSync(join(folder, name));
  for (const [fd, target] of ['socket:[11]', 'socket:[21]', 'socket:[22]', 'socket:[23]', '/dev/null', 'pipe:[12]'].entries())
    symlinkSync(target, join(folder, 'fd', String(fd)));
  const udp = (address: string, inode: number): string =>
    `  1: ${address} 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 2 0000000000000000 0\n`;
  writeFileSync(join(folder, 'net/udp'), `  sl  local_address ...\n${udp('0100007F:1CE8', 11)}${udp('00000000:1CF2', 12)}`);
  writeFileSync(
    join(folder, 'net/unix'),
    'Num       RefCount Protocol Flags    Type St Inode Path\n' +
      '0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/edge-health/control.sock\n' +
      '0000000000000000: 00000003 00000000 00000000 0001 03 22 /run/edge-health/control.sock\n' +
      '0000000000000000: 00000003 00000000 00010000 0001 01 23\n' +
      '0000000000000000: 00000002 00000000 00010000 0001 01 24 /run/other.sock\n',
  );
  t.same(openSockets(folder), [
    { protocol: 'udp', address: '127.0.0.1', port: 7400 },
    { protocol: 'unix', path: '/run/edge-health/control.sock' },
  ]);
  t.same(openSockets(join(folder, 'nowhere')), []);
});
