import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { connectionKey, parseUnsent, readUnsent } from './unsent.ts';

const TCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33011 1 0000000000000000 100 0 0 10 0
   1: 01014D0A:1388 02014D0A:C0DE 01 0002A1F0:00000000 01:00000019 00000000     0        0 33015 2 0000000000000000 20 4 30 10 -1
   2: 01014D0A:0016 02014D0A:C0DF 01 00001000:00000000 01:00000019 00000000     0        0 33016 2 0000000000000000 20 4 30 10 -1
`;
const TCP6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000101A8C0:1388 0000000000000000FFFF00000201A8C0:9C40 01 00000010:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 20 4 30 10 -1
   1: B80D01200000000000000000010000AA:1388 B80D0120000000000000000002000000:9C41 01 00000020:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 20 4 30 10 -1
`;

t.test('the tables are read, and their addresses are those that Node tells', async (t) => {
  const found = new Map([...parseUnsent(TCP, 5000), ...parseUnsent(TCP6, 5000)]);
  const of = (remoteAddress: string, remotePort: number): number | undefined => found.get(connectionKey({ remoteAddress, remotePort }));
  t.equal(of('10.77.1.2', 0xc0de), 0x2a1f0);
  t.equal(of('::ffff:10.77.1.2', 0xc0de), 0x2a1f0);
  t.equal(of('10.77.1.2', 0xc0df), undefined, 'another port of ours');
  t.equal(of('::ffff:192.168.1.2', 40_000), 16);
  t.equal(of('2001:db8::2', 40_001), 32);
  t.same(parseUnsent('rubbish\n', 5000), []);
});

t.test('what a flood leaves, thirty thousand closed connections, holds up nothing else', async (t) => {
  const closed = (at: number): string =>
    `${at}: 01014D0A:1388 03014D0A:${(at % 0xffff).toString(16).toUpperCase().padStart(4, '0')} 06 00000000:00000000 03:00000C3A 00000000     0        0 0 3 0000000000000000`.padEnd(
      149,
    );
  const [head = '', ...rows] = TCP.trimEnd().split('\n');
  const left = Array.from({ length: 30_000 }, (_, at) => closed(at));
  const table = `${temporaryFolder(t)}/tcp`;
  writeFileSync(table, [head, ...left.slice(0, 15_000), ...rows, ...left.slice(15_000), ''].join('\n'));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const unsent = await readUnsent(5000, [table, `${table}6`]);
  isOver = true;
  t.same([...unsent.values()], [0, 0x2a1f0], 'the one that listens, and the one that is open');
  t.ok(turns > 100, `${turns} times something else got its turn`);
});

for (const host of ['127.0.0.1', '::1', '::']) {
  t.test(`what a reader at ${host} does not take is found`, async (t) => {
    const server = createServer();
    server.on('error', (error) => t.comment(error.message)).listen(0, host);
    const isThere = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isThere) return t.pass('this machine has no such address');
    const { port } = server.address() as AddressInfo;
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect(port, host === '::' ? '127.0.0.1' : host).pause();
    const [socket] = await accepted;
    t.teardown(() => {
      client.destroy();
      socket.destroy();
      server.close();
    });
    socket.on('error', () => undefined);
    let waiting = 0;
    for (let times = 0; times < 2000 && waiting < 100_000; times += 1) {
      socket.write(Buffer.alloc(64 * 1024));
      waiting = (await readUnsent(port)).get(connectionKey(socket)) ?? 0;
    }
    t.ok(waiting >= 100_000, `${waiting} bytes wait`);
  });
}
