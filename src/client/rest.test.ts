import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { RestClient } from './rest.ts';

t.test('an endless response is not read into memory', async (t) => {
  let sent = 0;
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/error' ? 500 : 200, { Link: '</next>; rel="next"', 'Last-Event-ID': 'p1' });
    if (url === '/short') return response.end('{"a":1}');
    const piece = Buffer.alloc(65_536, ' ');
    const write = (): void => {
      while (!response.destroyed && response.write(piece)) sent += piece.length;
    };
    response.on('drain', write);
    write();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const rest = new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null });
  t.same(await rest.page('/short', { maxBytes: 7 }), { body: { a: 1 }, next: '/next', cursor: 'p1' });
  const refused = { name: 'ServiceUnreachable', message: /: more than 32 MB$/ };
  await t.rejects(rest.json('/json'), refused);
  await t.rejects(rest.text('/text'), refused);
  await t.rejects(rest.json('/error'), refused);
  t.ok(sent < 4 * 32e6, 'and the connection is closed');
});
