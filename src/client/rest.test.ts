import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { RestClient } from './rest.ts';

t.test('an endless response is not read into memory', async (t) => {
  let sent = 0;
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/error' ? 500 : 200, { Link: '<?page=2>; rel="next"', 'Last-Event-ID': 'p1' });
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
  t.same(await rest.page('/short', { maxBytes: 7 }), { body: { a: 1 }, next: '/short?page=2', cursor: 'p1' });
  const refused = { name: 'ServiceUnreachable', message: /: more than 32 MB$/ };
  await t.rejects(rest.json('/json'), refused);
  await t.rejects(rest.text('/text'), refused);
  await t.rejects(rest.json('/error'), refused);
  t.ok(sent < 4 * 32e6, 'and the connection is closed');
});

t.test('pages are followed behind a reverse proxy that adds a path', async (t) => {
  const requested: (string | undefined)[] = [];
  const server = createServer(({ url }, response) => {
    requested.push(url);
    response.writeHead(200, url?.includes('cursor') ? {} : { Link: '<?limit=1&cursor=a%2Fb>; rel="next"' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const rest = new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/robot1/`, token: null });
  for (let path: string | null = '/alerts?limit=1'; path !== null; ) ({ next: path } = await rest.page<unknown>(path));
  t.same(requested, ['/robot1/alerts?limit=1', '/robot1/alerts?limit=1&cursor=a%2Fb']);
});

t.test('an error of another program is shown as it is', async (t) => {
  const body = '{"code":[1],"detail":{"a":1}}';
  const server = createServer((_request, response) => response.writeHead(503).end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const rest = new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null });
  await t.rejects(rest.json('/status'), { name: 'ServiceRefused', message: `/status: 503 ${body}`, code: null });
});
