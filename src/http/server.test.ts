import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { RestServer } from './server.ts';

type Options = ConstructorParameters<typeof RestServer>[0];

function serverWith(options: Partial<Options>): RestServer {
  return new RestServer({
    host: '127.0.0.1',
    port: 0,
    token: null,
    allowedOrigins: [],
    allowedHosts: [],
    machineNames: { names: () => [], readAgain: async () => undefined },
    maxConnections: 8,
    maxEventStreams: 1,
    findUsers: async () => [],
    boundSockets: () => false,
    peerUser: () => null,
    dashboardFolder: '/nowhere',
    openapiFile: '/nowhere',
    view: {} as never,
    log: () => undefined,
    ...options,
  });
}

t.test('a name that the machine got after its names were read is allowed at the first request', async (t) => {
  const names: string[] = [];
  let reads = 0;
  const server = serverWith({
    allowedHosts: ['proxy.example'],
    machineNames: {
      names: () => names,
      readAgain: async () => {
        reads += 1;
        names.push('robot.lab.example');
      },
    },
  });
  const { port } = (await server.start()) as AddressInfo;
  t.teardown(() => server.stop());
  /** Status of a path that does not exist: 404 if the host is allowed. */
  const statusFor = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path: '/nowhere', headers: { Host: host }, agent: false }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      });
      outgoing.once('error', reject).end();
    });
  t.equal(await statusFor('127.0.0.1'), 404);
  t.equal(await statusFor('proxy.example'), 404);
  t.equal(reads, 0, 'known names cost nothing');
  t.equal(await statusFor('robot.lab.example:5000'), 404);
  t.equal(await statusFor('robot.lab.example'), 404);
  t.equal(reads, 1);
  t.equal(await statusFor('evil.example'), 421);
  t.equal(reads, 2);
});

t.test('a port in use is a problem with its remedy, and the server listens once it is free', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const lines: string[] = [];
  const bounded: number[] = [];
  const server = serverWith({
    port,
    boundSockets: (descriptor) => bounded.push(descriptor) > 0,
    log: (level, message) => lines.push(`${level}: ${message}`),
  });
  t.teardown(() => server.stop());
  t.equal(await server.start(), null);
  t.equal(server.address, null);
  t.equal(server.problem, `port ${port} is in use; stop the other program or set another rest.port`);
  t.equal(server.counts().problem, server.problem);
  holder.close();
  await until('the server listens', () => server.address !== null);
  t.equal(server.address?.port, port);
  t.equal(server.problem, null);
  t.equal(bounded.length, 1, 'its connections are bounded');
  t.same(lines, ['error: REST API not listening; will retry', 'notice: REST API listening']);
});

t.test('attempts to listen are repeated with growing pauses, for any error, until the server is stopped', async (t) => {
  const { setTimeout } = globalThis;
  t.teardown(() => Object.assign(globalThis, { setTimeout }));
  const pauses: number[] = [];
  Object.assign(globalThis, { setTimeout: (action: () => void, pauseMs: number) => pauses.push(pauseMs) && setTimeout(action, 0) });
  const lines: string[] = [];
  // TEST-NET-1, which no machine has (RFC 5737).
  const server = serverWith({
    host: '192.0.2.1',
    port: 5000,
    log: (_level, message, fields) => lines.push(`${message}: ${fields?.['problem']}`),
  });
  t.equal(await server.start(), null);
  const long = (): number[] => pauses.filter((pauseMs) => pauseMs >= 1000);
  await until('there are seven attempts', () => long().length >= 7);
  await server.stop();
  t.same(long().slice(0, 7), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  t.equal(lines.length, 1, 'logged once');
  t.match(lines[0], /192\.0\.2\.1, port 5000: .*EADDRNOTAVAIL.*; set rest\.host to an address of this machine/);
});

t.test('a user whose responses the kernel would keep without limit cannot connect to the Unix socket any more', async (t) => {
  const log: string[] = [];
  let user: number | null = 4711;
  const server = serverWith({ maxUnread: 3, peerUser: () => user, log: (_level, message) => log.push(message) });
  const path = join(temporaryFolder(t), 'rest.sock');
  await server.listenOnSocket(path);
  t.teardown(() => server.stop());
  const answer = async (): Promise<string> => {
    const socket = connect(path, () => socket.write('GET /nowhere HTTP/1.0\r\n\r\n'));
    let text = '';
    socket
      .on('error', () => undefined)
      .setEncoding('latin1')
      .on('data', (piece: string) => {
        text += piece;
      });
    await new Promise((resolve) => socket.once('close', resolve));
    return text;
  };
  for (let i = 0; i < 10; i += 1) t.match(await answer(), /404/, 'a client that reads does not count');
  for (let i = 0; i < 10; i += 1) {
    const socket = connect(path, () => socket.write('GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n'));
    socket.resume();
    await new Promise((resolve) => socket.once('end', resolve));
  }
  t.match(await answer(), /404/, 'nor does one that would keep its connection open');
  for (let i = 0; i < 3; i += 1) {
    // It reads nothing, and so does not notice that the service has closed the connection.
    const socket = connect(path, () => socket.pause().write('malformed\r\n\r\n'));
    t.teardown(() => socket.destroy());
  }
  await until('the limit is reached', () => log.length > 0);
  t.same(log, ['REST socket closed to other users: too many responses not read']);
  for (user of [4711, null]) t.equal(await answer(), '');
  for (user of [0, process.getuid?.() ?? 0]) t.match(await answer(), /404/);
});
