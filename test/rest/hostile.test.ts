import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { startInProcess, TestClocks } from '../../testkit/service/remote-nodes.ts';
import {
  measured,
  openDescriptors,
  problemOf,
  RawConnection,
  type StatusDocument,
  sendRequest,
  startService,
  stillWell,
} from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

/** This host has 16 connections beyond the maximum. */
const MAX_CONNECTIONS = 8 + 16;

const service = await startService(t, { config: { publish_frequency: 10, rest: { max_connections: 8 } } });
await measured(service);

type Server = Pick<typeof service, 'url'>;

/** Opens connections that are closed by the service or by the caller, at any moment. */
async function connections(to: Server, count: number, bytes: string): Promise<RawConnection[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => RawConnection.open(to).catch(() => null)));
  const open = opened.filter((connection) => connection !== null);
  for (const connection of open) if (bytes !== '') connection.send(bytes);
  return open;
}

const few = ({ rest }: StatusDocument): boolean => rest.connections <= 3;

t.test('thousands of idle connections keep no normal client out, and few of them stay open', async (t) => {
  const COUNT = 3000;
  const descriptors = openDescriptors(service);
  let most = 0;
  let made = 0;
  for (; made < COUNT; made += 100) {
    // Half of them send nothing, half send the beginning of a request only. At most a hundred are open at once in this process.
    const opened = [...(await connections(service, 50, '')), ...(await connections(service, 50, 'GET /health HTTP/1.1\r\nX-'))];
    t.equal(opened.length, 100, 'each connection is accepted');
    most = Math.max(most, openDescriptors(service));
    const response = await service.get('/health', { headers: { Connection: 'close' } });
    t.equal(response.status, 200, 'a normal client is served');
    await response.arrayBuffer();
    for (const { socket } of opened) socket.destroy();
  }
  const { rest } = await service.json<StatusDocument>('/status');
  t.ok(rest.connections <= MAX_CONNECTIONS, `${rest.connections} of them are open`);
  t.ok(rest.evicted_connections >= COUNT / 2, `${rest.evicted_connections} were closed for newer ones`);
  t.ok(most <= descriptors + 2 * MAX_CONNECTIONS + 100, `at most ${most} descriptors were open, ${descriptors} before`);
});

t.test('connections that are being served are not closed in favour of idle ones', async (t) => {
  await service.until<StatusDocument>('/status', few);
  const stream = await RawConnection.open(service);
  const isFollowed = async (connection: RawConnection): Promise<boolean> => {
    const { length } = connection.received;
    await until('another event', () => connection.received.indexOf('event: health', length) >= 0 || connection.socket.closed);
    return !connection.socket.closed;
  };
  stream.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await stream.until(/event: health/);
  const idle = await connections(service, 200, '');
  await until('idle connections are closed', () => idle.filter(({ socket }) => socket.closed).length >= 200 - MAX_CONNECTIONS);
  t.ok(await isFollowed(stream), 'the event stream goes on');
  for (const { socket } of idle) socket.destroy();
  await service.until<StatusDocument>('/status', few);
  // With a stream on every connection but one, only the newest one can be closed.
  const streams = [stream];
  for (let n = 2; n < MAX_CONNECTIONS; n += 1) {
    const connection = await RawConnection.open(service);
    connection.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await connection.until(/event: health/);
    streams.push(connection);
  }
  const late = await connections(service, 10, 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await until('each is answered or closed', () => late.every(({ received, socket }) => received !== '' || socket.closed));
  for (const connection of streams) t.ok(await isFollowed(connection), 'streams are not closed for a request');
  for (const { socket } of [...streams, ...late]) socket.destroy();
  await service.until<StatusDocument>('/status', few);
});

t.test('slowloris: headers that are slow or never complete get a 408, and the connection is closed', async (t) => {
  const server = await startInProcess(t, temporaryFolder(t), new TestClocks(), { headersSeconds: 1 });
  server.measure();
  const silent = await RawConnection.open(server);
  const partial = (await RawConnection.open(server)).send('GET /health HTTP/1.1\r\nHost: localhost\r\n');
  const body = (await RawConnection.open(server)).send('POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n');
  const trickle = await connections(server, 20, 'GET /health HTTP/1.1\r\n');
  t.equal(trickle.length, 20);
  const drip = setInterval(() => {
    for (const connection of trickle) if (connection.socket.writable) connection.send('X-a: b\r\n');
  }, 50);
  t.teardown(() => clearInterval(drip));
  await body.until(/^HTTP\/1\.1 405 /);
  t.pass('one that does not send its body is answered without it');
  for (const connection of [silent, partial, ...trickle]) await connection.untilClosed();
  clearInterval(drip);
  for (const connection of [partial, ...trickle]) {
    t.match(connection.received, /^HTTP\/1\.1 408 /);
    t.match(connection.received, /application\/problem\+json[\s\S]*"code":"request_timeout"/);
  }
  t.equal((await fetch(`${server.url}/health`)).status, 200, 'a normal client is served');
  body.socket.destroy();
});

t.test('many large histories at once, and readers that never read them, delay no other client', async (t) => {
  const server = await startInProcess(t, temporaryFolder(t));
  await server.run(6000, () => server.measure());
  const REQUEST = 'GET /health/history?hours=100 HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const readers = await connections(server, 50, REQUEST);
  for (const { socket } of readers) socket.pause();
  const piled = (await RawConnection.open(server)).send(REQUEST.repeat(60));
  piled.socket.pause();
  const isHolding = ({ rest }: StatusDocument): boolean => rest.connections > 50;
  t.ok(isHolding(await server.json<StatusDocument>('/status')), 'while they are open');
  t.equal((await fetch(`${server.url}/health`)).status, 200);
  t.equal((await fetch(`${server.url}/health/history?limit=1`)).status, 200, 'also one that asks the store');
  for (const { socket } of [piled, ...readers]) socket.destroy();
  await until('all of them are gone', async () => few(await server.json<StatusDocument>('/status')));
});

t.test('unusual methods and targets are refused', async (t) => {
  for (const method of ['M-SEARCH', 'SUBSCRIBE', 'LINK', 'MKCALENDAR', 'QUERY', 'SOURCE', 'UNLOCK']) {
    const answer = await sendRequest(service, method, '/health');
    t.equal(answer.status, 405, method);
    t.equal(problemOf(answer).code, 'method_not_allowed');
  }
  for (const target of [
    '/?',
    '/??',
    '/#',
    '/health#x',
    '/health;x=1',
    '/health/./',
    '/health//',
    '/health?node=health_monitor#x',
    `/${'a/'.repeat(2000)}`,
    '/%E2%80%AE',
    '/~',
    '/health?%00',
    '/\\',
    '/health\\..\\',
  ]) {
    const answer = await sendRequest(service, 'GET', target);
    t.ok([200, 400, 404].includes(answer.status), `${target.slice(0, 40)}: ${answer.status}`);
  }
});

t.test('the service is healthy afterwards', async (t) => stillWell(t, service));
