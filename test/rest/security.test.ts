import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { exchange, measured, PATHS, problemOf, sendRequest, startIn, startService, stillWell } from '../../testkit/service/rest.ts';
import { ROOT, type RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const ALLOWED = 'https://dashboard.example:8443';

/** A service with the default configuration, for tests that only read. */
const plain: RunningService = await startService(t);
await measured(plain);

t.test('cross-origin requests', async (t) => {
  const service = await startService(t, { config: { rest: { allowed_origins: [ALLOWED, 'http://other.example'] } } });
  await measured(service);

  await t.test('are allowed to the configured origins, on every path, and on errors', async (t) => {
    for (const path of [...PATHS, '/nowhere', '/health?x=1', '/']) {
      const { headers } = await sendRequest(service, 'HEAD', path, { Origin: ALLOWED });
      t.equal(headers['access-control-allow-origin'], ALLOWED, path);
      t.match(headers['vary'], /Origin/);
      t.match(headers['access-control-expose-headers'], /Link/);
      t.equal(headers['cross-origin-resource-policy'], 'cross-origin');
      t.equal(headers['access-control-allow-credentials'], undefined);
    }
    const second = await sendRequest(service, 'GET', '/health', { Origin: 'http://other.example' });
    t.equal(second.headers['access-control-allow-origin'], 'http://other.example');
  });

  await t.test('are not allowed to any other', async (t) => {
    const others = [
      'https://dashboard.example',
      `${ALLOWED}.evil.example`,
      'http://dashboard.example:8443',
      'null',
      '*',
      ALLOWED.toUpperCase(),
      `${ALLOWED}/`,
      `${ALLOWED}, http://x`,
    ];
    for (const origin of others) {
      const answer = await sendRequest(service, 'GET', '/health', { Origin: origin });
      t.equal(answer.status, 200, 'the response itself needs no token');
      t.equal(answer.headers['access-control-allow-origin'], undefined, origin);
      t.match(answer.headers['vary'], /Origin/, 'for caches');
      const preflight = await sendRequest(service, 'OPTIONS', '/health', { Origin: origin, 'Access-Control-Request-Method': 'GET' });
      t.equal(preflight.status, 405, `no preflight for ${origin}`);
    }
  });

  await t.test('are announced by a preflight', async (t) => {
    const answer = await sendRequest(service, 'OPTIONS', '/health/history?limit=1', {
      Origin: ALLOWED,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'authorization, last-event-id',
    });
    t.equal(answer.status, 204);
    t.equal(answer.headers['access-control-allow-origin'], ALLOWED);
    t.equal(answer.headers['access-control-allow-methods'], 'GET, HEAD');
    t.match(answer.headers['access-control-allow-headers']?.toLowerCase(), /authorization.*last-event-id/);
    t.notMatch(answer.headers['access-control-allow-headers'], /snapshot/i, 'a snapshot takes a header that no page can send');
    t.equal(answer.body, '');
  });
});

t.test('without configured origins no CORS header is sent; * allows every origin', async (t) => {
  const { headers } = await sendRequest(plain, 'GET', '/status', { Origin: ALLOWED });
  t.equal(headers['access-control-allow-origin'], undefined);
  const open = await startService(t, { config: { rest: { allowed_origins: ['*'] } } });
  for (const origin of [ALLOWED, 'null']) {
    t.equal((await sendRequest(open, 'GET', '/status', { Origin: origin })).headers['access-control-allow-origin'], '*', origin);
  }
});

t.test('a page of another host name that resolves to this machine gets nothing, whatever it requests', async (t) => {
  const contract = await Contract.of(plain);
  for (const path of [...PATHS, '/', '/main.js', '/nowhere', '/health?x=1']) {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST']) {
      const answer = await sendRequest(plain, method, path, { Host: 'evil.example:5000', 'Edge-Health-Snapshot': '1' });
      t.equal(answer.status, 421, `${method} ${path}`);
      t.equal(answer.headers['content-type'], 'application/problem+json');
      if (method !== 'HEAD') t.match(problemOf(answer), { code: 'host_not_allowed', detail: /"evil\.example:5000".*rest\.allowed_hosts/ });
      if (method === 'GET' && PATHS.some((known) => known === path)) t.same(contract.violations(path, answer), []);
    }
  }
  for (const hosts of ['Host: localhost\r\nHost: evil.example\r\n', 'Host: evil.example\r\nHost: localhost\r\n', ''])
    t.match(
      await exchange(plain, `GET /status HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`),
      /^HTTP\/1\.1 400 [\s\S]*"malformed_request"/,
    );
  t.match(await exchange(plain, 'GET /health HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /, 'HTTP/1.0 has no Host');
  for (const host of [hostname(), hostname().toUpperCase(), `${hostname().split('.')[0]}.local:5000`, '[::1]', '192.0.2.1'])
    t.equal((await sendRequest(plain, 'GET', '/health', { Host: host })).status, 200, host);
});

t.test('further names are allowed by rest.allowed_hosts, and apply after a reload', async (t) => {
  const service = await startService(t, { config: { rest: { allowed_hosts: ['first.example'], allowed_origins: [ALLOWED] } } });
  const status = async (host: string): Promise<number> => (await sendRequest(service, 'GET', '/status', { Host: host })).status;
  t.equal(await status('First.Example:443'), 200);
  t.equal(await status('second.example'), 421);
  const preflight = { Origin: ALLOWED, 'Access-Control-Request-Method': 'GET' };
  t.equal(
    (await sendRequest(service, 'OPTIONS', '/health', { ...preflight, Host: 'second.example' })).status,
    421,
    'also for an allowed origin',
  );
  const { config } = await service.json<StatusDocument>('/status');
  writeFileSync(config.file, readFileSync(config.file, 'utf8').replace('first.example', 'second.example'));
  service.process.kill('SIGHUP');
  await until('the second name is allowed', async () => (await status('second.example')) === 200);
  t.equal(await status('first.example'), 421);
  t.same((await service.json<StatusDocument>('/status')).config.restart_needed, []);
});

t.test('every response has headers that keep other sites from embedding or loading it', async (t) => {
  const guards = {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'content-security-policy': /frame-ancestors '(none|self)'/,
  };
  for (const path of [...PATHS, '/', '/main.js', '/nowhere', '/health?x=1'])
    t.match((await sendRequest(plain, 'HEAD', path)).headers, guards, path);
  t.match((await sendRequest(plain, 'GET', '/health')).headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'");
  for (const request of [
    'nonsense\r\n\r\n',
    'CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    `GET / HTTP/1.1\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
  ]) {
    const answer = await exchange(plain, request);
    for (const name of Object.keys(guards)) t.match(answer.toLowerCase(), `\r\n${name}: `, request.slice(0, 20));
  }
});

t.test('a bearer token', async (t) => {
  const folder = temporaryFolder(t);
  const token = 'secret-Token_0123456789.~+/=';
  const file = join(folder, 'token');
  writeFileSync(file, `${token}\n`);
  const config = { rest: { token_file: file, allowed_origins: [ALLOWED] } };
  const service = await startIn(t, folder, { config });
  const right = { Authorization: `Bearer ${token}` };
  await until('the first sample', async () => (await sendRequest(service, 'GET', '/health', right)).status === 200);

  await t.test('is required on every path of the API', async (t) => {
    for (const path of [...PATHS, '/health?x=1', '/events?node=nobody']) {
      const answer = await sendRequest(service, 'GET', path);
      t.equal(answer.status, 401, path);
      t.match(answer.headers['www-authenticate'], /^Bearer /);
      t.equal(answer.headers['content-type'], 'application/problem+json');
      t.equal(problemOf(answer).code, 'unauthorized');
    }
  });

  await t.test('must match exactly', async (t) => {
    const wrong = [
      'Bearer',
      'Bearer ',
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token.toLowerCase()}`,
      `Bearer ${token} ${token}`,
      token,
      `Basic ${Buffer.from(`x:${token}`).toString('base64')}`,
      `Token ${token}`,
      'Bearer undefined',
      'Bearer null',
    ];
    for (const authorization of wrong) {
      const answer = await sendRequest(service, 'GET', '/status', { Authorization: authorization });
      t.equal(answer.status, 401, authorization);
      t.notMatch(answer.body, token, 'and is not reported');
    }
    t.equal((await sendRequest(service, 'GET', `/status?token=${encodeURIComponent(token)}`)).status, 401, 'not in the URL');
  });

  await t.test('grants access to everything', async (t) => {
    for (const path of PATHS) t.equal((await sendRequest(service, 'HEAD', path, right)).status, path.includes('{') ? 404 : 200, path);
    t.equal(
      (await sendRequest(service, 'GET', '/status', { Authorization: `bearer  ${token}` })).status,
      200,
      'whatever the case of the scheme',
    );
  });

  await t.test('is not needed for the dashboard, its files, and a preflight', async (t) => {
    const page = await sendRequest(service, 'GET', '/');
    t.equal(page.status, 200);
    t.match(page.headers['content-type'], /^text\/html/);
    t.equal((await sendRequest(service, 'GET', '/main.js')).status, 200);
    const preflight = await sendRequest(service, 'OPTIONS', '/health', { Origin: ALLOWED, 'Access-Control-Request-Method': 'GET' });
    t.equal(preflight.status, 204);
  });

  await t.test('is read again on reload; an unreadable file changes nothing', async (t) => {
    const status = async (value: string): Promise<number> =>
      (await sendRequest(service, 'GET', '/status', { Authorization: `Bearer ${value}` })).status;
    const rotated = `rotated-${'y'.repeat(20)}`;
    const stream = await fetch(`${service.url}/events`, { headers: right });
    writeFileSync(file, rotated);
    t.equal(await status(rotated), 401, 'before the reload');
    service.process.kill('SIGHUP');
    await service.logged(/configuration reloaded/);
    t.equal(await status(rotated), 200);
    t.equal(await status(token), 401, 'the old one is refused');
    await t.resolves(stream.text(), 'streams that were opened with it have ended');

    writeFileSync(file, 'short');
    service.process.kill('SIGHUP');
    await service.logged(/rest\.token_file .* must hold one word of 16 to 512 characters/);
    await service.logged(/not reloaded: the running configuration stays in force/);
    rmSync(file);
    service.process.kill('SIGHUP');
    await service.logged(/rest\.token_file .* cannot be read: ENOENT/);
    t.equal(await status(rotated), 200, 'the token stays in force');
    const { config } = (await (
      await fetch(`${service.url}/status`, { headers: { Authorization: `Bearer ${rotated}` } })
    ).json()) as StatusDocument;
    t.match(config.problem, /cannot be read/);

    writeFileSync(file, token);
    service.process.kill('SIGHUP');
    await until('the first token is in force again', async () => (await status(token)) === 200);
  });

  await t.test('is never in the log', async (t) => {
    t.notMatch(service.log, token.slice(0, 16));
    await service.end();
    t.notMatch(service.log, token.slice(0, 16));
    t.match(service.log, /received SIGTERM, shutting down/, 'to its end');
  });
});

t.test('the service refuses to start with a file without a token, and does not show its content', async (t) => {
  const folder = temporaryFolder(t);
  for (const content of ['\n', 'too-short', `two words-${'x'.repeat(20)}`, 'x'.repeat(513)]) {
    const file = join(folder, 'token');
    writeFileSync(file, content);
    const failure = await startIn(t, folder, { config: { rest: { token_file: file } } }).then(
      () => 'it started',
      (error: Error) => error.message,
    );
    t.match(failure, /ended \(78\)/);
    t.match(failure, /one word of 16 to 512 characters/);
    if (content.length > 8) t.notMatch(failure, content.trim().slice(0, 9));
  }
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  for (const [name, reason] of [
    ['missing', 'ENOENT'],
    ['pipe', 'not a file'],
  ] as const) {
    const failure = await startIn(t, folder, { config: { rest: { token_file: join(folder, name) } } }).then(
      () => 'it started',
      (error: Error) => error.message,
    );
    t.match(failure, /ended \(78\)/);
    t.match(failure, `cannot be read: ${reason}`);
  }
});

t.test('the dashboard is served with its security headers, and requested again after an update', async (t) => {
  for (const path of ['/', '/index.html', '/main.js', '/main.css', '/manifest.webmanifest', '/status/ok.svg']) {
    const { headers, status, body } = await sendRequest(plain, 'GET', path);
    t.equal(status, 200, path);
    t.match(headers['content-security-policy'], /default-src 'self'/);
    t.equal(headers['x-content-type-options'], 'nosniff');
    t.equal(headers['cache-control'], 'no-cache');
    t.equal(Number(headers['content-length']), Buffer.byteLength(body));
    for (const encoding of ['br', 'gzip']) {
      const small = await sendRequest(plain, 'HEAD', path, { 'Accept-Encoding': encoding });
      t.equal(small.headers['content-encoding'], encoding, `${path} is there in ${encoding}`);
      t.ok(Number(small.headers['content-length']) < Buffer.byteLength(body));
      t.match(small.headers['vary'], /Accept-Encoding/);
    }
    const again = await sendRequest(plain, 'GET', path, { 'If-None-Match': headers['etag'] as string });
    t.equal(again.status, 304);
    // From there a browser takes them over.
    for (const name of ['content-security-policy', 'cache-control']) t.equal(again.headers[name], headers[name], name);
  }
});

t.test('no path leads out of the dashboard', async (t) => {
  const steps = ['..', '%2e%2e', '%2E%2e', '.%2e', '..%2f', '..%5c', '..\\', '%252e%252e', '..;', '%c0%ae%c0%ae', '..%00', '....'];
  const targets = ['package.json', 'main.cjs', 'openapi.json', 'edge_health_config.yaml', 'etc/passwd'];
  const paths = steps.flatMap((step) => targets.flatMap((target) => [1, 2, 8].map((depth) => `/${`${step}/`.repeat(depth)}${target}`)));
  paths.push(
    `/${ROOT}/package.json`,
    `//etc/passwd`,
    '/%2fetc%2fpasswd',
    '/%2Fetc/passwd%00.js',
    '/main.js%00',
    '/main.js%2f..%2f..%2fpackage.json',
    '/main.js/../../package.json',
    '/.%00./package.json',
    '/file:///etc/passwd',
    '/.git/config',
    '/.built',
    '/constructor',
    '/__proto__',
    '/hasOwnProperty/index.html',
  );
  const seen = new Set<string>();
  for (const path of paths) {
    const answer = await exchange(plain, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? '';
    t.match(status, /^40[04]$/, path);
    t.match(answer, /application\/problem\+json/);
    t.notMatch(answer, /root:|"dependencies"|require\(|publish_frequency|\[core\]/);
    seen.add(status);
  }
  t.ok(seen.has('404'));
  await stillWell(t, plain);
});
