import t from 'tap';
import {
  ask,
  later,
  measured,
  openDescriptors,
  problemOf,
  RawConnection,
  recorded,
  residentMegabytes,
  type StatusDocument,
  startService,
  stillWell,
} from '../../testkit/rest.ts';
import type { RunningService } from '../../testkit/service.ts';

/** Opens connections that are not asked to do anything; those that are closed meanwhile are let go. */
async function idle(service: RunningService, count: number, bytes: string): Promise<RawConnection[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => RawConnection.open(service).catch(() => null)));
  const open = connections.filter((connection) => connection !== null);
  for (const connection of open) if (bytes !== '') connection.send(bytes);
  return open;
}

/** How long a normal client waits for /health, at worst of some. */
async function slowestHealth(service: RunningService): Promise<number> {
  let slowest = 0;
  for (let n = 0; n < 10; n += 1) {
    const start = performance.now();
    const response = await service.get('/health', { headers: { Connection: 'close' } });
    if (response.status !== 200) throw new Error(`/health is ${response.status}`);
    await response.arrayBuffer();
    slowest = Math.max(slowest, performance.now() - start);
  }
  return slowest;
}

t.test('10,000 idle connections keep no normal client out, and cost a bounded amount', async (t) => {
  const MAX = 128;
  const service = await startService(t, { config: { rest: { max_connections: MAX } } });
  await measured(service);
  await slowestHealth(service);
  const memory = residentMegabytes(service);
  const descriptors = openDescriptors(service);
  let most = 0;
  const opened: RawConnection[] = [];
  for (let batch = 0; batch < 50; batch += 1) {
    // Half of them say nothing, half begin a request that never ends.
    opened.push(...(await idle(service, 100, ''))); // No more than some hundred are open at once: this process needs no more descriptors.
    opened.push(...(await idle(service, 100, 'GET /health HTTP/1.1\r\nX-')));
    most = Math.max(most, openDescriptors(service));
    if (batch % 10 === 9) {
      const waited = await slowestHealth(service);
      t.ok(waited < 2000, `after ${(batch + 1) * 200} connections /health takes ${Math.round(waited)} ms`);
    }
  }
  t.ok(opened.length > 9900, `${opened.length} connections were made`);
  const { rest } = await service.json<StatusDocument>('/status');
  t.ok(rest.connections <= MAX, `${rest.connections} of them are open`);
  t.ok(rest.evicted_connections >= 10_000 - 2 * MAX, `${rest.evicted_connections} were closed for newer ones`);
  t.ok(most <= descriptors + MAX + 20, `at most ${most} descriptors were open, ${descriptors} before`);
  const grown = residentMegabytes(service) - memory;
  t.ok(grown < 40, `memory grew by ${grown.toFixed(1)} MB`);
  for (const { socket } of opened) socket.destroy();
  await stillWell(t, service);
});

t.test('connections that are being served are not closed for idle ones', async (t) => {
  const service = await startService(t, { config: { publish_frequency: 10, rest: { max_connections: 20 } } });
  await measured(service);
  const stream = await RawConnection.open(service);
  stream.send('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  await stream.until(/event: health/);
  const connections = await idle(service, 200, '');
  const seen = stream.received.length;
  await later(500);
  t.notOk(stream.socket.destroyed, 'the event stream goes on');
  t.ok(stream.received.length > seen);
  // With a stream in every place there is nobody to close but the newest.
  for (const { socket } of connections) socket.destroy();
  await service.until<StatusDocument>('/status', ({ rest }) => rest.connections <= 3);
  const streams = await Promise.all(
    Array.from({ length: 18 }, async () => {
      const connection = await RawConnection.open(service);
      connection.send('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
      await connection.until(/event: health/);
      return connection;
    }),
  );
  const late = await idle(service, 10, 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
  await later(300);
  t.ok(
    streams.every(({ socket }) => !socket.destroyed),
    'streams are not closed for a request',
  );
  for (const { socket } of [stream, ...streams, ...late]) socket.destroy();
  await service.until<StatusDocument>('/status', ({ rest }) => rest.connections <= 3);
  await stillWell(t, service);
});

t.test('slowloris: headers that trickle, or never come, are answered with 408 and closed', async (t) => {
  const service = await startService(t);
  await measured(service);
  const silent = await RawConnection.open(service);
  const partial = (await RawConnection.open(service)).send('GET /health HTTP/1.1\r\nHost: x\r\n');
  const body = (await RawConnection.open(service)).send('POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
  const trickle = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const connection = await RawConnection.open(service);
      connection.send('GET /health HTTP/1.1\r\n');
      return connection;
    }),
  );
  const drip = setInterval(() => {
    for (const connection of trickle) if (connection.socket.writable) connection.send('X-a: b\r\n');
    if (body.socket.writable) body.send('x');
  }, 500);
  t.teardown(() => clearInterval(drip));
  t.ok((await slowestHealth(service)) < 2000, 'a normal client is served meanwhile');
  for (const connection of [silent, partial, body, ...trickle]) t.equal(await connection.isClosedWithin(45), true);
  clearInterval(drip);
  for (const connection of [partial, ...trickle]) {
    t.match(connection.received, /^HTTP\/1\.1 408 /);
    t.match(connection.received, /application\/problem\+json[\s\S]*"code":"request_timeout"/);
  }
  t.match(body.received, /^HTTP\/1\.1 405 /, 'one that does not finish its body has long been answered');
  await stillWell(t, service);
});

t.test('many large histories at once, and readers that never take them, hold up neither sampling nor others', async (t) => {
  const service = await startService(t, { config: { publish_frequency: 1000 } });
  await recorded(service, 6000);
  const quiet = residentMegabytes(service);
  const connections = await idle(service, 200, 'GET /health/history?hours=1 HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const { socket } of connections) socket.pause();
  const waited = await slowestHealth(service);
  t.ok(waited < 1500, `/health takes ${Math.round(waited)} ms`);
  for (const { socket } of connections.slice(0, 100)) socket.destroy();
  await later(500);
  const piled = (await RawConnection.open(service)).send('GET /health/history?hours=1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(60));
  piled.socket.pause();
  await later(500);
  t.ok((await slowestHealth(service)) < 1500);
  const grown = residentMegabytes(service) - quiet;
  t.ok(grown < 150, `memory grew by ${grown.toFixed(0)} MB`);
  for (const { socket } of [piled, ...connections]) socket.destroy();
  await service.until<StatusDocument>('/status', ({ rest }) => rest.connections <= 2);
  await stillWell(t, service);
});

t.test('absurd methods and targets', async (t) => {
  const service = await startService(t);
  await measured(service);
  for (const method of ['M-SEARCH', 'SUBSCRIBE', 'LINK', 'MKCALENDAR', 'QUERY', 'SOURCE', 'UNLOCK']) {
    const answer = await ask(service, method, '/health');
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
    const answer = await ask(service, 'GET', target);
    t.ok([200, 400, 404].includes(answer.status), `${target.slice(0, 40)}: ${answer.status}`);
  }
  await stillWell(t, service);
});
