import { EventEmitter, once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { Connections, type ConnectionsOptions, type Serve } from './connections.ts';
import { markAsUnix, PIECE_BYTES, TurnQueue, waitForDrain } from './context.ts';

const WORK_MS = 2;

function work(): void {
  const until = performance.now() + WORK_MS;
  while (performance.now() < until);
}

async function listening(
  t: Test,
  serve: Serve,
  options: Partial<ConnectionsOptions> = {},
): Promise<{ port: number; connections: Connections }> {
  const server = createServer();
  const connections = new Connections(server, { max: 100, serve, turns: new TurnQueue(), findUsers: async () => [], ...options });
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

t.test('the waiting requests of a client that disconnects are dropped', async (t) => {
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
    socket.resume().write([`/${index}`, `/${index}?waiting`].map((path) => REQUEST.replace('/', path)).join(''));
    if (index % 2 === 1) socket.resetAndDestroy();
  }
  const stays = (url: string): boolean => Number.parseInt(url.slice(1), 10) % 2 === 0;
  await until('those that stay are served', () => connections.count <= 20 && served.filter(stays).length === 40);
  for (const [index, socket] of sockets.entries()) if (index % 2 === 0) socket.destroy();
  await until('all are forgotten', () => connections.count === 0);
  const late = served.filter((url) => !stays(url) && url.endsWith('waiting'));
  t.ok(late.length < 20, `${late.length} of 20 were served`);
});

t.test('of thousands of pipelined requests, no more objects are created than may wait', async (t) => {
  const server = createServer();
  let made = 0;
  server.on('request', () => {
    made += 1;
  });
  new Connections(server, { max: 10, serve: () => undefined, turns: new TurnQueue(), findUsers: async () => [] });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const socket = await connected(t, (server.address() as AddressInfo).port);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined).write(REQUEST.repeat(2000));
  await closed;
  t.ok(made >= 65 && made <= 70, `${made} of 2000`);
});

/** Sends as handlers send a large body: each chunk waits until the client has read the previous one. */
async function sendForever(response: ServerResponse): Promise<void> {
  const piece = Buffer.alloc(PIECE_BYTES, 'x');
  while (!response.destroyed) {
    response.write(piece);
    await waitForDrain(response);
  }
}

t.test('a client of the Unix socket that stops reading is dropped', async (t) => {
  const path = join(temporaryFolder(t), 'rest.sock');
  const server = createServer().on('connection', markAsUnix);
  const connections = new Connections(server, {
    max: 8,
    serve: (_request, response) => void sendForever(response),
    turns: new TurnQueue(),
    findUsers: async () => [],
    writeSeconds: 0.2,
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => server.close());
  const socket = connect(path);
  t.teardown(() => socket.destroy());
  socket.pause().write(REQUEST);
  await until('it is dropped', () => connections.dropped === 1);
  t.equal(connections.count, 0);
});

t.test('a client that stops reading is dropped even if it sends requests; a slow reader is not', async (t) => {
  const dropped: ServerResponse[] = [];
  const { port, connections } = await listening(t, (_request, response) => void sendForever(response), {
    writeSeconds: 2,
    onDrop: (response) => dropped.push(response),
  });
  const [deaf, slow] = [await connected(t, port), await connected(t, port)];
  let taken = 0;
  const sips = setInterval(() => {
    taken += (slow.read(PIECE_BYTES) as Buffer | null)?.length ?? 0;
  }, 20);
  const requests = setInterval(() => deaf.write(REQUEST), 20);
  t.teardown(() => {
    clearInterval(sips);
    clearInterval(requests);
  });
  for (const socket of [deaf, slow])
    socket
      .on('error', () => undefined)
      .pause()
      .write(REQUEST);
  await until('one is dropped', () => connections.dropped > 0);
  const before = taken;
  await until('the other goes on for longer than that', () => taken > before + 150 * PIECE_BYTES);
  t.equal(connections.dropped, 1);
  t.equal(dropped.length, 1);
  t.notOk(slow.closed);
});

t.test('a client that does not close its half of an ended connection is dropped', async (t) => {
  const { port, connections } = await listening(t, (_request, response) => void response.end('x'), { writeSeconds: 0.2 });
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  socket.on('error', () => undefined).write(REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
  });
  await once(socket, 'end');
  t.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nx$/);
  await until('it is forgotten', () => connections.count === 0);
  t.equal(connections.dropped, 1);
});

/** The part of a socket that Connections uses, with any remote address. */
class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly localAddress = '192.0.2.1';
  writable = true;
  writableEnded = false;
  readonly writableFinished = true;
  writableLength = 0;
  bytesWritten = 0;
  closed = false;
  answer = '';

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  end(answer: string): void {
    this.writable = false;
    this.answer = answer;
  }

  resume(): void {}

  destroy(): void {
    this.writable = false;
    this.closed = true;
    this.emit('close');
  }

  resetAndDestroy(): void {
    this.destroy();
  }
}

/** A response on a FakeSocket. */
class FakeResponse extends EventEmitter {
  readonly destroyed = false;
  readonly #socket: FakeSocket;

  constructor(socket: FakeSocket) {
    super();
    this.#socket = socket;
  }

  get writableLength(): number {
    return this.#socket.writableLength;
  }
}

class Clients {
  readonly #server = new EventEmitter();
  readonly connections: Connections;
  readonly #sockets: FakeSocket[] = [];

  constructor(t: Test, options: Partial<ConnectionsOptions> = {}) {
    this.connections = new Connections(this.#server as Server, {
      max: 8,
      serve: () => undefined,
      turns: new TurnQueue(),
      findUsers: async () => [],
      ...options,
    });
    t.teardown(() => {
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  open(address: string): FakeSocket {
    const socket = new FakeSocket(address);
    this.#sockets.push(socket);
    this.#server.emit('connection', socket);
    return socket;
  }

  openUnix(): FakeSocket {
    const socket = new FakeSocket('');
    markAsUnix(socket as unknown as Socket);
    this.#sockets.push(socket);
    this.#server.emit('connection', socket);
    return socket;
  }

  /** Opens a connection whose request is being served; the client has not read `unread` bytes of the response. */
  serve(address: string, unread = 0): FakeSocket {
    const socket = this.open(address);
    if (socket.writable) this.#server.emit('request', { socket }, new FakeResponse(socket));
    socket.writableLength = unread;
    return socket;
  }
}

const many = (count: number, open: () => FakeSocket): FakeSocket[] => Array.from({ length: count }, open);

t.test('one client has at most half of the connections; beyond it, its own longest idle connection is closed', async (t) => {
  const clients = new Clients(t, { max: 40 });
  const first = many(20, () => clients.open('198.51.100.1'));
  const other = clients.open('198.51.100.2');
  const mapped = clients.open('::ffff:198.51.100.1');
  t.ok(first[0]?.closed, 'the same client, whichever way its address is written');
  t.notOk(other.closed || mapped.closed || first[1]?.closed);
  const network = many(21, () => clients.open(`2001:db8::${Math.random().toString(16).slice(2, 6)}`));
  t.ok(network[0]?.closed, 'a /64 network is one client');
  t.equal(network.filter(({ closed }) => closed).length, 1);
  t.match(clients.open('2001:db8:0:1::1').closed, false, 'the next network another');
});

t.test('of the hosts of one link, which share fe80::/64, each has a share of its own', async (t) => {
  const clients = new Clients(t, { max: 40 });
  const flood = many(20, () => clients.serve('fe80::a%eth0'));
  t.match(clients.open('fe80::a%eth0').answer, /fe80::a%eth0 has 20 connections/);
  for (const other of ['fe80::b%eth0', 'fe80::a%wlan0', 'febf::a%eth0']) t.equal(clients.open(other).answer, '', other);
  t.notOk(flood.some(({ closed }) => closed));
});

t.test('a client whose connections are all being served is refused with a 503; other clients are not', async (t) => {
  const clients = new Clients(t, { max: 40 });
  const served = many(20, () => clients.serve('198.51.100.1'));
  const refused = clients.open('198.51.100.1');
  t.match(refused.answer, /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1\r\n[\s\S]*"code":"too_many_connections"[\s\S]*198\.51\.100\.1 has 20 /);
  t.notOk(served.some(({ closed }) => closed));
  t.equal(clients.open('198.51.100.2').answer, '');
  const flood = many(50, () => clients.open('198.51.100.1'));
  t.equal(flood.filter(({ answer }) => answer !== '').length, 15, 'no more than 16 are kept open for it');
  t.equal(flood.filter(({ closed }) => closed).length, 35, 'further ones are closed');
  t.equal(clients.connections.count, 21);
});

t.test('remote clients cannot block connections of this host', async (t) => {
  const clients = new Clients(t);
  const remote = [1, 2].flatMap((n) => many(4, () => clients.serve(`198.51.100.${n}`)));
  t.match(clients.open('198.51.100.3').answer, /all 8 connections are being served/);
  const local = ['127.0.0.1', '::1', '::ffff:127.0.0.5', '192.0.2.1'].flatMap((address) => many(4, () => clients.serve(address)));
  t.notOk([...remote, ...local].some(({ closed, answer }) => closed || answer !== ''));
  const further = clients.open('127.0.0.1');
  await until('beyond the reserve, this host is limited as well', () => /503/.test(further.answer));
  local[0]?.destroy();
  t.equal(clients.open('127.0.0.1').answer, '');
});

t.test('a connection over the Unix socket is one of this host', async (t) => {
  const clients = new Clients(t);
  for (const n of [1, 2]) many(4, () => clients.serve(`198.51.100.${n}`));
  t.match(clients.open('').answer, /503/, 'a TCP connection whose address is not known any more is none');
  t.equal(clients.openUnix().answer, '');
});

t.test('no user of this host can take the connections of the others; users are looked up once they make a difference', async (t) => {
  const users = new Map<unknown, string>();
  let lookups = 0;
  const clients = new Clients(t, {
    max: 40,
    findUsers: async (sockets) => {
      lookups += 1;
      return sockets.map((socket) => users.get(socket) ?? null);
    },
  });
  const serve = (user: string): FakeSocket => {
    const socket = clients.serve('127.0.0.1');
    users.set(socket, user);
    return socket;
  };
  const first = many(36, () => serve('mallory'));
  t.equal(lookups, 0);
  const isRefused = ({ answer, closed }: FakeSocket): boolean => closed || answer !== '';
  const flood = many(300, () => serve('mallory'));
  t.equal(clients.connections.count, 36, 'those whose user is not known yet do not count');
  await until('every further one is refused', () => flood.every(isRefused));
  for (const socket of flood) socket.destroy();
  const another = serve('mallory');
  await until('it is refused', () => /503[\s\S]*user mallory has 36 connections/.test(another.answer));
  t.notOk(first.some(isRefused));
  for (const n of [1, 2]) many(20, () => clients.serve(`198.51.100.${n}`));
  for (const user of ['root', 'edge-health', 'ann']) {
    const sockets = many(4, () => serve(user));
    const beyond = serve(user);
    await until(`${user} has no more than four`, () => isRefused(beyond));
    t.notOk(
      sockets.some(({ closed, answer }) => closed || answer !== ''),
      `${user} has four all the same`,
    );
  }
});

t.test('a request of a connection whose user is not known yet is served afterwards', async (t) => {
  const { promise, resolve } = Promise.withResolvers<string[]>();
  const served: unknown[] = [];
  const clients = new Clients(t, { max: 8, findUsers: () => promise, serve: ({ socket }) => served.push(socket) });
  many(24, () => clients.serve('127.0.0.1'));
  const later = clients.serve('127.0.0.1');
  const gone = clients.serve('127.0.0.1');
  await until('the lookup has begun', () => true);
  t.equal(served.length, 24);
  gone.destroy();
  resolve([...Array<string>(24).fill('mallory'), 'ann']);
  await until('it is served', () => served.includes(later));
  t.equal(served.length, 25);
  t.equal(clients.connections.count, 25);
});

t.test('a new connection replaces the longest stalled one, not one that is being read or that waits for the service', async (t) => {
  const clients = new Clients(t, { writeSeconds: 1 });
  const [stalled, later, reading, waiting] = [1, 2, 3, 4].map((n) => clients.serve(`198.51.100.${n}`, n === 4 ? 0 : 1000)) as [
    FakeSocket,
    FakeSocket,
    FakeSocket,
    FakeSocket,
  ];
  const others = many(4, () => clients.serve('198.51.100.9'));
  const reads = setInterval(() => {
    reading.bytesWritten += 1;
    if (!stalled.closed) later.bytesWritten += 1;
  }, 1);
  t.teardown(() => clearInterval(reads));
  let opened = 0;
  await until('a new connection is accepted', () => {
    opened += 1;
    return clients.open('198.51.100.5').answer === '' && stalled.closed;
  });
  t.ok(opened > 0);
  t.notOk([later, reading, waiting, ...others].some(({ closed }) => closed));
  await until('the next one stalls', () => {
    clients.open('198.51.100.6');
    return later.closed;
  });
  t.notOk([reading, waiting, ...others].some(({ closed }) => closed));
});

t.test('when responses hold too much memory, the longest unread are dropped; a shared body counts once', async (t) => {
  const clients = new Clients(t, { max: 40, budgetBytes: 1000, writeSeconds: 1000 });
  const hold = (socket: FakeSocket, body: object, bytes: number): void =>
    clients.connections.hold(socket as unknown as Socket, body, bytes);
  const [first, second, third] = [1, 2, 3].map((n) => clients.serve(`198.51.100.${n}`)) as [FakeSocket, FakeSocket, FakeSocket];
  const [shared, own] = [{}, {}];
  for (const socket of [first, second, third]) hold(socket, shared, 900);
  t.equal(clients.connections.dropped, 0);
  await new Promise((later) => setTimeout(later, 2));
  const newcomer = clients.serve('198.51.100.4');
  hold(newcomer, own, 900);
  t.ok(
    [first, second, third].every(({ closed }) => closed),
    'the longest unread responses',
  );
  t.notOk(newcomer.closed);
  newcomer.writableLength = 200;
  await new Promise((later) => setTimeout(later, 2));
  const last = clients.serve('198.51.100.5');
  hold(last, {}, 10);
  t.ok(newcomer.closed, 'unread bytes of the socket count too');
  t.notOk(last.closed);
  t.equal(clients.connections.dropped, 4);
});
