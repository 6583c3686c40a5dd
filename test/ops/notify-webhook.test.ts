import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Result } from '../../ops/notify/channels/channel.ts';
import { webhookChannel } from '../../ops/notify/channels/webhook.ts';
import { testMessage } from '../../ops/notify/message.ts';
import type { Config } from '../../src/config/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { accept, Receiver, SELF_SIGNED } from '../../testkit/ops/http-receiver.ts';

type WebhookConfig = Config['ops']['notify']['webhook'];

const PLAIN: WebhookConfig = {
  url: '',
  url_file: null,
  token_file: null,
  template_file: null,
  content_type: 'application/json',
  ca_file: null,
};
const message = testMessage({ id: 'robot-7-abc-1', nowMs: Date.now(), host: 'robot-7', dashboard: 'http://robot-7:5000' });

function send(config: Partial<WebhookConfig>, { seconds = 600, signal = new AbortController().signal } = {}): Promise<Result> {
  return webhookChannel({ ...PLAIN, ...config }, 'somewhere', '1.2.3', Date.now, seconds).send(message, signal);
}

async function receiver(t: Test, ...given: Parameters<typeof Receiver.start>): Promise<Receiver> {
  const started = await Receiver.start(...given);
  t.teardown(() => started.stop());
  return started;
}

t.test('the document is sent with its id and the token of the file', async (t) => {
  const hook = await receiver(t);
  const token = join(temporaryFolder(t), 'token');
  writeFileSync(token, 's3cret\n');
  t.same(await send({ url: hook.url, token_file: token }), { kind: 'delivered', detail: 'answered 204' });
  t.same(hook.messages(), [message]);
  t.match(hook.received[0]?.headers, {
    'content-type': 'application/json',
    'idempotency-key': 'robot-7-abc-1',
    authorization: 'Bearer s3cret',
    'user-agent': 'edge-health/1.2.3',
  });
});

t.test('a template is sent as JSON and as text', async (t) => {
  const hook = await receiver(t);
  const template = join(temporaryFolder(t), 'template');
  writeFileSync(template, '{"text": "{{subject}}", "n": {{count}}}');
  t.match(await send({ url: hook.url, template_file: template }), { kind: 'delivered' });
  t.same(JSON.parse(hook.received[0]?.body ?? ''), { text: '[robot-7] TEST: a test of the notifications', n: 0 });
  writeFileSync(template, '{{host}}: {{summary}}\n');
  t.match(await send({ url: hook.url, template_file: template, content_type: 'text/plain; charset=utf-8' }), { kind: 'delivered' });
  t.equal(hook.received[1]?.body, 'robot-7: a test of the notifications; nothing is wrong\n');
});

t.test('problems that the operator can fix are retried, and reported with the remedy', async (t) => {
  const hook = await receiver(t);
  const folder = temporaryFolder(t);
  const template = join(folder, 'template');
  const expect = async (config: Partial<WebhookConfig>, detail: RegExp): Promise<void> => {
    const result = await send({ url: hook.url, ...config });
    t.match(result, { kind: 'retry', detail });
  };
  writeFileSync(template, '{"text": "{{sumary}}"}');
  await expect({ template_file: template }, /there is no placeholder \{\{sumary\}\} here; correct it/);
  writeFileSync(template, '{"text": {{summary}}}');
  await expect({ template_file: template }, /the result is not JSON/);
  await expect(
    { template_file: join(folder, 'none') },
    /template_file: .*none cannot be read \(ENOENT\); correct the key or make the file/,
  );
  await expect({ token_file: join(folder, 'none') }, /ops\.notify\.webhook\.token_file/);
  t.same(hook.received, [], 'nothing was sent');
});

t.test('refused, overloaded and redirecting receivers are reported without a token from the response', async (t) => {
  const hook = await receiver(t);
  const token = join(temporaryFolder(t), 'token');
  writeFileSync(token, 's3cret');
  const cases: [number, Record<string, string>, string, Result][] = [
    [500, {}, 'oops\nline', { kind: 'retry', detail: 'answered 500: oops line' }],
    [429, { 'retry-after': '7' }, '', { kind: 'retry', detail: 'answered 429', afterMs: 7000 }],
    [503, { 'retry-after': 'nonsense' }, '', { kind: 'retry', detail: 'answered 503' }],
    [401, {}, 'bad token s3cret', { kind: 'final', detail: 'answered 401: bad token …; check ops.notify.webhook' }],
    [
      308,
      { location: 'https://there.example/x' },
      '',
      {
        kind: 'final',
        detail:
          'answered 308; redirects are not followed: set ops.notify.webhook.url or url_file to the new address at https://there.example',
      },
    ],
  ];
  for (const [status, headers, body, expected] of cases) {
    hook.behaviour = (response) => response.writeHead(status, headers).end(body);
    t.same(await send({ url: hook.url, token_file: token }), expected, `${status}`);
  }
  hook.behaviour = (response) => {
    response.writeHead(500);
    const timer = setInterval(() => response.write('x'.repeat(10_000)), 1);
    response.on('close', () => clearInterval(timer));
  };
  t.match(await send({ url: hook.url }), { kind: 'retry', detail: /^answered 500: x+…$/ }, 'an answer without end is cut');
});

t.test('a URL in a file is read for each notification, and never repeated in a message', async (t) => {
  const [one, two] = [await receiver(t), await receiver(t)];
  const file = join(temporaryFolder(t), 'url');
  const inFile = { url: null, url_file: file };
  t.match(await send(inFile), {
    kind: 'retry',
    detail: `ops.notify.webhook.url_file: ${file} cannot be read (ENOENT); correct the key or make the file`,
  });
  writeFileSync(file, 'hooks.example.com/s3cret-path\n');
  t.match(await send(inFile), {
    kind: 'retry',
    detail: `ops.notify.webhook.url_file: ${file} has no address; its first line must begin with http:// or https://`,
  });
  for (const hook of [one, two]) {
    writeFileSync(file, `${hook.url}?key=%68idden-k%65y\r\n# the second line is not read\n`);
    t.match(await send(inFile), { kind: 'delivered' });
    t.equal(hook.received[0]?.path, '/hook/secret-path?key=%68idden-k%65y');
  }
  for (const body of [
    'Cannot POST /hook/secret-path?key=%68idden-k%65y',
    'no channel "secret-path"',
    'bad key hidden-key',
    'moved: see https://user:word@hooks.example.com/secret/path',
  ]) {
    two.behaviour = (response) => response.writeHead(404).end(body);
    const { detail } = await send(inFile);
    t.match(detail, /^answered 404: .*…/);
    t.notMatch(detail, /secret|hidden|idden-k|word@/);
  }
});

t.test('a slow receiver is waited for; one that hangs or closes the connection is reported', async (t) => {
  const hook = await receiver(t, (response) => {
    setTimeout(() => response.writeHead(200).end('taken'), 50);
  });
  t.match(await send({ url: hook.url }), { kind: 'delivered' });
  hook.behaviour = () => undefined;
  t.same(await send({ url: hook.url }, { seconds: 0.2 }), { kind: 'retry', detail: 'no response within 0.2 s' });
  hook.behaviour = (response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('some of it');
  };
  t.same(
    await send({ url: hook.url }, { seconds: 0.2 }),
    { kind: 'retry', detail: 'no response within 0.2 s' },
    'nor one that does not finish',
  );
  hook.behaviour = (response) => {
    response.socket?.resetAndDestroy();
  };
  t.same(await send({ url: hook.url }), { kind: 'retry', detail: 'connection reset' });
  const ending = new AbortController();
  hook.behaviour = () => ending.abort(new Error('ended with the scheduler'));
  t.same(await send({ url: hook.url }, { signal: ending.signal }), { kind: 'retry', detail: 'ended with the scheduler' });
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  t.match(await send({ url: `http://127.0.0.1:${port}/` }), { kind: 'retry', detail: /refused: is the server running/ });
  const mute = createServer((socket) => socket.end('SMTP ready\r\n')).listen(0, '127.0.0.1');
  t.teardown(() => mute.close());
  await once(mute, 'listening');
  t.match(await send({ url: `http://127.0.0.1:${(mute.address() as AddressInfo).port}/` }), { kind: 'retry' }, 'what is no HTTP server');
  const other = createServer((socket) => {
    socket.on('error', () => undefined).end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
  }).listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  t.same(
    await send({ url: `http://127.0.0.1:${(other.address() as AddressInfo).port}/` }, { seconds: 0.2 }),
    { kind: 'retry', detail: 'no response within 0.2 s' },
    'nor one that changes to another protocol',
  );
});

t.test('TLS: an unknown certificate is refused with the remedy, and trusted once it is configured', async (t) => {
  const hook = await receiver(t, accept, SELF_SIGNED);
  t.same(await send({ url: hook.url }), {
    kind: 'retry',
    detail:
      "its certificate is not trusted (self-signed certificate); for a certificate of your own, name it or its authority's in ops.notify.webhook.ca_file",
  });
  t.same(hook.received, []);
  t.match(await send({ url: hook.url, ca_file: SELF_SIGNED.file }), { kind: 'delivered' });
  const other = hook.url.replace('127.0.0.1', '127.0.0.2');
  t.match(await send({ url: other, ca_file: SELF_SIGNED.file }), { kind: 'retry' }, 'another address is another name');
});
