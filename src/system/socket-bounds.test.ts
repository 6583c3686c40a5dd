import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { openLibc } from '../core/platform/libc.ts';
import { boundSockets, peerUser } from './socket-bounds.ts';

const BOUNDS = { sendBytes: 48 * 1024, receiveBytes: 24 * 1024, unreadSeconds: 30 };

const descriptorOf = (of: Server | Socket): number => (of as unknown as { _handle: { fd: number } })._handle.fd;

t.test('a connection inherits the options of the listening socket', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.equal(boundSockets(descriptorOf(server), BOUNDS), true);
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  t.teardown(() => {
    client.destroy();
    server.close();
  });
  const { getsockopt } = openLibc({ getsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'buffer'], return: 'i32' } });
  const option = (level: number, name: number): number => {
    const value = Buffer.alloc(4);
    getsockopt(descriptorOf(accepted), level, name, value, Buffer.from([4, 0, 0, 0]));
    return value.readInt32LE();
  };
  // SO_SNDBUF and SO_RCVBUF, which the kernel doubles; TCP_USER_TIMEOUT in milliseconds.
  t.equal(option(1, 7), 2 * BOUNDS.sendBytes);
  t.equal(option(1, 8), 2 * BOUNDS.receiveBytes);
  t.equal(option(6, 18), 30_000);
});

t.test('without node:ffi it returns false and throws no error', async (t) => {
  t.equal(boundSockets(-1, BOUNDS), false);
  const program = `import { boundSockets } from ${JSON.stringify(new URL('socket-bounds.ts', import.meta.url).href)};
    process.stdout.write(String(boundSockets(0, ${JSON.stringify(BOUNDS)})));`;
  t.equal(
    execFileSync(process.execPath, ['--no-experimental-ffi', '--input-type=module', '--eval', program], { encoding: 'utf8' }),
    'false',
  );
});

t.test('the user of a Unix connection is known', async (t) => {
  const path = join(temporaryFolder(t), 'socket');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const client = connect(path);
  const [accepted] = (await once(server, 'connection')) as [Socket];
  t.equal(peerUser(descriptorOf(accepted)), process.getuid?.());
  t.equal(peerUser(-1), null);
  client.destroy();
  server.close();
});
