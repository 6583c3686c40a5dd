import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { until } from '../../testkit/wait.ts';
import { Connections, type Serve } from './connections.ts';

const WORK_MS = 2;

function work(): void {
  const until = performance.now() + WORK_MS;
  while (performance.now() < until);
}

async function listening(t: Test, serve: Serve, max = 100): Promise<{ port: number; connections: Connections }> {
  const server = createServer();
  const connections = new Connections(server, max, serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, connections };
}

async function connected(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

for (const [what, clients, requests] of [
  ['many connections that ask at once', 40, 1],
  ['few connections that ask for much at once', 6, 12],
  ['many connections that ask for much at once', 25, 5],
] as const) {
  t.test(`${what} leave time for everything else`, async (t) => {
    let served = 0;
    const atTicks: number[] = [];
    const { port } = await listening(t, (_request, response) => {
      work();
      served += 1;
      response.end('x');
    });
    const sockets = await Promise.all(Array.from({ length: clients }, () => connected(t, port)));
    const timer = setInterval(() => atTicks.push(served), 1);
    t.teardown(() => clearInterval(timer));
    for (const socket of sockets) socket.resume().write(REQUEST.repeat(requests));
    await until('all are served', () => served === clients * requests);
    const between = atTicks.map((count, index) => count - (atTicks[index - 1] ?? 0));
    t.ok(Math.max(...between) <= 4, `at most ${Math.max(...between)} of ${clients * requests} requests between two turns of a timer`);
  });
}

t.test('answers to one connection come in the order of its requests', async (t) => {
  const { port } = await listening(t, (request, response) => {
    if (request.url === '/slow') setTimeout(() => response.end('slow '), 30);
    else response.end(`${request.url} `);
  });
  const socket = await connected(t, port);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(['/a', '/slow', '/b', '/c'].map((path) => REQUEST.replace('/', path)).join(''));
  await until('the last answer', () => text.includes('/c '));
  t.same(text.match(/(\/\w|slow) /g), ['/a ', 'slow ', '/b ', '/c ']);
});

t.test('a client that leaves while its request waits is forgotten, and is not served', async (t) => {
  const served: string[] = [];
  const { port, connections } = await listening(t, (request, response: ServerResponse) => {
    work();
    work();
    work();
    served.push(request.url ?? '');
    response.end();
  });
  const sockets = await Promise.all(Array.from({ length: 40 }, () => connected(t, port)));
  for (const [index, socket] of sockets.entries()) {
    socket.resume().write(REQUEST.replace('/', `/${index}`));
    if (index % 2 === 1) socket.resetAndDestroy();
  }
  const isServed = (url: string): boolean => Number(url.slice(1)) % 2 === 0;
  await until('those that stay are served', () => connections.count <= 20 && served.filter(isServed).length === 20);
  for (const [index, socket] of sockets.entries()) if (index % 2 === 0) socket.destroy();
  await until('all are forgotten', () => connections.count === 0);
  t.pass();
});

t.test('of thousands of requests in one piece no more are made than may wait', async (t) => {
  const server = createServer();
  let made = 0;
  server.on('request', () => {
    made += 1;
  });
  new Connections(server, 10, () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const socket = await connected(t, (server.address() as AddressInfo).port);
  socket.on('error', () => undefined).write(REQUEST.repeat(2000));
  await once(socket, 'close');
  t.ok(made >= 65 && made <= 70, `${made} of 2000`);
});
