import t, { type Test } from 'tap';
import { EventReader } from '../../testkit/service/events.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import {
  exchange,
  measured,
  openDescriptors,
  problemOf,
  RawConnection,
  recorded,
  type StatusDocument,
  sendRequest,
  startService,
  stillWell,
} from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

const service = await startService(t, { config: { publish_frequency: 10 } });
await measured(service);
const contract = await Contract.of(service);

const HOST = 'Host: localhost\r\n';
const CLOSE = 'Connection: close\r\n';

interface Parsed {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function parse(text: string): Parsed {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]),
  );
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]), headers, body: rest.join('\r\n\r\n') };
}

async function refused(t: Test, request: string | Buffer, status: number, code: string): Promise<Parsed> {
  const answer = parse(await exchange(service, request));
  const what = String(request).slice(0, 60);
  t.equal(answer.status, status, what);
  t.equal(answer.headers['content-type'], 'application/problem+json');
  t.equal(Number(answer.headers['content-length']), answer.body.length, 'a whole body');
  const problem = JSON.parse(answer.body) as Record<string, unknown>;
  t.same(contract.schemaViolations({ $ref: '#/components/schemas/Problem' }, problem), []);
  t.match(problem, { status, code, type: 'about:blank' });
  return answer;
}

t.test('a URL that is too long is a 414', async (t) => {
  const url = (length: number): string => `/health?node=${'n'.repeat(length - 13)}`;
  t.equal((await sendRequest(service, 'GET', url(4096))).status, 400, '4096 characters are looked at');
  const answer = await sendRequest(service, 'GET', url(4097));
  t.equal(answer.status, 414);
  t.equal(problemOf(answer).code, 'url_too_long');
  t.same(contract.violations('/health', answer), []);
  for (const length of [8000, 10_000, 60_000]) await refused(t, `GET ${url(length)} HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, 414, 'url_too_long');
});

t.test('headers that are too large are a 431', async (t) => {
  await refused(t, `GET /health HTTP/1.1\r\n${HOST}X: ${'x'.repeat(9000)}\r\n\r\n`, 431, 'headers_too_large');
  await refused(t, `GET /health HTTP/1.1\r\n${HOST}${'x: y\r\n'.repeat(3000)}\r\n`, 431, 'headers_too_large');
  await refused(t, `GET /health HTTP/1.1\r\n${HOST}${'x'.repeat(60_000)}: y\r\n\r\n`, 431, 'headers_too_large');
  t.equal((await sendRequest(service, 'GET', '/health', { 'X-Padding': 'x'.repeat(7000) })).status, 200, 'large ones are not');
  t.equal((await sendRequest(service, 'GET', '/health', { 'If-None-Match': `"${'x'.repeat(3000)}"` })).status, 200);
});

t.test('a megabyte of headers gets a response before the connection is closed', async (t) => {
  await refused(t, `GET /health HTTP/1.1\r\n${HOST}X: ${'x'.repeat(1_000_000)}`, 431, 'headers_too_large');
});

t.test('input that is not HTTP is a 400', async (t) => {
  const garbage = [
    'hello\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    Buffer.from(Array.from({ length: 500 }, (_, i) => (i * 37 + 128) % 256)),
    'GET\r\n\r\n',
    `GET /health HTTP/9.9\r\n${HOST}\r\n`,
    `GET /health HTTP/1.1\r\nNo colon\r\n\r\n`,
    `GET /health HTTP/1.1\r\n${HOST}Bad header: x\r\n\r\n`,
    `GET /health HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`,
    `GET /he\0alth HTTP/1.1\r\n${HOST}\r\n`,
    `GET /health HTTP/1.1\r\n${HOST}Content-Length: x\r\n\r\n`,
    `GET /health HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `GET /health HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
    `get /health HTTP/1.1\r\n${HOST}\r\n`,
    `FROBNICATE /health HTTP/1.1\r\n${HOST}\r\n`,
    `${'G'.repeat(5000)} /health HTTP/1.1\r\n${HOST}\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\r\n\r\nGET\0',
    '{"jsonrpc":"2.0"}',
  ];
  for (const bytes of garbage) await refused(t, bytes, 400, 'malformed_request');
  await refused(t, `GET /health HTTP/1.1\r\n${CLOSE}\r\n`, 400, 'malformed_request');
});

t.test('CONNECT is a 405 as well, and an upgrade is ignored', async (t) => {
  const answer = await refused(t, `CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`, 405, 'method_not_allowed');
  t.equal(answer.headers['allow'], 'GET, HEAD');
  for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
    const text = await exchange(
      service,
      `GET /health HTTP/1.1\r\n${HOST}Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
    t.equal(parse(text).status, 200, protocol);
  }
});

t.test('HTTP/1.0 gets complete responses, without chunks', async (t) => {
  await recorded(service, 3);
  for (const path of ['/health', '/health/history', '/status', '/metrics', '/']) {
    const { body, headers, status } = parse(await exchange(service, `GET ${path} HTTP/1.0\r\n\r\n`));
    t.equal(status, 200, path);
    t.equal(headers['connection'], 'close');
    t.equal(headers['transfer-encoding'], undefined);
    t.match(headers['date'], /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'RFC 9110, 5.6.7');
    if (headers['content-type'] === 'application/json') t.ok(JSON.parse(body));
  }
});

t.test('an absolute URL in the request line is used as its path, if its host is this machine', async (t) => {
  for (const [url, status] of [
    ['http://localhost:5000/health', 200],
    ['HTTP://127.0.0.1/health?node=health_monitor', 200],
    ['http://localhost', 200],
    ['http://localhost?x', 200],
    ['http://localhost/nowhere', 404],
    ['http://evil.example/health', 421],
    ['http://localhost@evil.example/health', 421],
    ['http:///health', 421],
    ['*', 400],
  ] as const) {
    t.equal(parse(await exchange(service, `GET ${url} HTTP/1.1\r\n${HOST}${CLOSE}\r\n`)).status, status, url);
  }
});

t.test('responses to pipelined requests come in their order', async (t) => {
  const paths = Array.from(
    { length: 50 },
    (_, n) => ['/health/history', '/health', '/nowhere', '/status', '/main.js', '/health?x=1'][n % 6] as string,
  );
  const requests = paths.map((path, n) => `GET ${path} HTTP/1.1\r\n${HOST}${n === paths.length - 1 ? CLOSE : ''}\r\n`);
  const text = await exchange(service, requests.join(''));
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  t.same(
    statuses,
    paths.map((path) => ({ '/nowhere': 404, '/health?x=1': 400 })[path] ?? 200),
  );
});

t.test('a connection whose requests wait behind an endless response is closed', async (t) => {
  const connection = await RawConnection.open(service);
  connection.send(`GET /events HTTP/1.1\r\n${HOST}\r\n`);
  await connection.until(/event: health/);
  connection.send(`GET /health HTTP/1.1\r\n${HOST}\r\n`.repeat(60));
  // The requests arrived before the response to a request that was sent after them on another connection.
  t.equal((await sendRequest(service, 'GET', '/health')).status, 200);
  const events = (text: string): number => text.split('event: health').length;
  const before = events(connection.received);
  await until('another event', () => events(connection.received) > before || connection.socket.closed);
  t.equal(connection.socket.closed, false, 'some may wait');
  connection.send(`GET /health HTTP/1.1\r\n${HOST}\r\n`.repeat(20_000));
  await connection.untilClosed();
});

t.test('an unexpected body is ignored', async (t) => {
  const body = JSON.stringify({ hello: 'world' });
  for (const framing of [
    `Content-Length: ${body.length}\r\n\r\n${body}`,
    `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ]) {
    const text = await exchange(service, `GET /health HTTP/1.1\r\n${HOST}${framing}GET /nowhere HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
    t.same(
      [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status),
      ['200', '404'],
      'and what follows it is the next request',
    );
  }
  const expecting = await exchange(service, `GET /health HTTP/1.1\r\n${HOST}${CLOSE}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`);
  t.match(expecting, /HTTP\/1\.1 200 OK/);
  t.match(await exchange(service, `GET /health HTTP/1.1\r\n${HOST}${CLOSE}Expect: miracles\r\n\r\n`), /^HTTP\/1\.1 200 OK/);
});

t.test('garbage after a request, or during a response, ends only its own connection', async (t) => {
  for (const path of ['/health', '/health/history', '/main.js']) {
    const text = await exchange(service, `GET ${path} HTTP/1.1\r\n${HOST}\r\n\0\0garbage\r\n\r\n`);
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
    t.ok(['', '200', '400', '200,400'].includes(statuses.join()), `${path}: ${statuses.join()}`);
  }
  const stream = await RawConnection.open(service);
  stream.send(`GET /events HTTP/1.1\r\n${HOST}\r\n`);
  await stream.until(/event: health/);
  stream.send('garbage\r\n\r\n');
  await stream.untilClosed();
  t.notMatch(stream.received, /HTTP\/1\.1 400/, 'no second answer in the middle of the first');
});

t.test('a file is always served as a whole, whatever range is requested', async (t) => {
  const whole = await sendRequest(service, 'GET', '/main.js');
  for (const range of [
    'bytes=5-2',
    'bytes=0-0',
    'bytes=-5',
    'bytes=99999999-',
    'bytes=99999999999999999999-1',
    'bytes=--',
    'bytes=1-2,3-4',
    'lines=1-2',
    'bytes=x-y',
    'bytes=5-NaN',
  ]) {
    const answer = await sendRequest(service, 'GET', '/main.js', { Range: range });
    t.equal(answer.status, 200, range);
    t.equal(answer.body, whole.body);
  }
});

t.test('clients that disconnect early leave nothing open', async (t) => {
  await recorded(service, 30);
  const before = openDescriptors(service);
  const paths = ['/main.js', '/health/history', '/status', '/events', '/openapi.json', '/'];
  for (let round = 0; round < 8; round += 1) {
    const connections = await Promise.all(Array.from({ length: 30 }, () => RawConnection.open(service)));
    for (const [n, connection] of connections.entries()) connection.send(`GET ${paths[n % paths.length]} HTTP/1.1\r\n${HOST}\r\n`);
    // They disconnect at different moments: at once, or after one, two or three turns of the service.
    for (let turn = 0; turn < round % 4; turn += 1) await sendRequest(service, 'HEAD', '/health');
    for (const [n, { socket }] of connections.entries()) {
      if (n % 2 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
  }
  const { rest } = await service.until<StatusDocument>(
    '/status',
    (status) => status.rest.event_streams === 0 && status.rest.connections <= 2,
  );
  t.equal(rest.event_streams, 0);
  await until('what was opened for them is closed', () => openDescriptors(service) <= before + 5, {
    describe: () => `${before} open files and connections before, ${openDescriptors(service)} after 240 aborts`,
  });
});

t.test('a client that stops in the middle of its request, or closes its side after it, is served or dropped', async (t) => {
  const half = await RawConnection.open(service);
  half.send('GET /health HTTP/1.1\r\nHo');
  half.socket.end();
  await half.untilClosed();
  const connection = await RawConnection.open(service);
  connection.send(`GET /health HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
  connection.socket.end();
  t.match(await connection.until(/\}$/), /HTTP\/1\.1 200 OK/, 'its answer still comes');
});

t.test('event streams of disconnected clients are no longer counted', async (t) => {
  const readers = await Promise.all(Array.from({ length: 10 }, () => EventReader.open(service.url)));
  const { rest } = await service.until<StatusDocument>('/status', (status) => status.rest.event_streams === 10);
  t.equal(rest.event_streams, 10);
  for (const reader of readers) reader.close();
  await service.until<StatusDocument>('/status', (status) => status.rest.event_streams === 0);
});

t.test('the service is healthy afterwards', async (t) => stillWell(t, service));
