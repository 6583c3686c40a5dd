import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import type { Result } from '../../ops/notify/channels/channel.ts';
import { emailChannel } from '../../ops/notify/channels/email.ts';
import { messageOf } from '../../ops/notify/message.ts';
import { facts, line, open } from '../../ops/notify/testing/lines.ts';
import type { Config } from '../../src/config/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SELF_SIGNED } from '../../testkit/ops/http-receiver.ts';
import { until } from '../../testkit/wait.ts';

// Deliveries to a real mail server are tested in test/system/ops/notify-email.test.ts.

const message = messageOf(facts, [line('raised', 'CRITICAL', 'robot 7')], [open('CRITICAL')]);

type EmailConfig = Config['ops']['notify']['email'];

function send(given: Partial<EmailConfig>, signal = new AbortController().signal, content = message): Promise<Result> {
  const nothing = { user: null, password_file: null, from: null, ca_file: null };
  const config = { host: '127.0.0.1', port: 1, security: 'none' as const, to: ['ops@example.org'], ...nothing, ...given };
  return emailChannel(config, 'robot-7', '1.2.3').send(content, signal);
}

/** A mail server that accepts everything, and what was sent to it; with `offers` it has STARTTLS. */
async function mailServer(t: Test, { offers, tls }: { offers: boolean; tls: boolean }): Promise<{ port: number; lines: string[] }> {
  const lines: string[] = [];
  const serve = (socket: Socket, isFirst: boolean): void => {
    socket.on('error', () => undefined);
    let isData = false;
    const answer = (line: string): void => {
      if (isData && line !== '.') return;
      const wasData = isData;
      isData = line === 'DATA';
      if (line.startsWith('EHLO')) socket.write(`250-mail\r\n${offers && isFirst ? '250-STARTTLS\r\n' : ''}250 AUTH PLAIN\r\n`);
      else if (line === 'STARTTLS' && !offers) socket.write('502 not known\r\n');
      else if (line === 'STARTTLS') {
        socket.removeAllListeners('data');
        socket.write('220 go ahead\r\n');
        serve(new TLSSocket(socket, { isServer: true, cert: SELF_SIGNED.cert, key: SELF_SIGNED.key }), false);
      } else socket.write(isData ? '354 go ahead\r\n' : wasData ? '250 taken\r\n' : '250 fine\r\n');
    };
    let rest = '';
    socket.on('data', (piece: Buffer) => {
      const all = (rest + piece.toString()).split('\r\n');
      rest = all.pop() as string;
      lines.push(...all);
      all.forEach(answer);
    });
    if (isFirst) socket.write('220 mail\r\n');
  };
  const server: Server = tls
    ? createTlsServer(SELF_SIGNED, (socket) => serve(socket, true))
    : createServer((socket) => serve(socket, true));
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, lines };
}

t.test('a missing mail server, and one that never responds, are reported', async (t) => {
  const sockets: { destroyed: boolean }[] = [];
  const mute = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
  }).listen(0, '127.0.0.1');
  t.teardown(() => mute.close());
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  const ending = new AbortController();
  const sending = send({ port }, ending.signal);
  await until('it connected', () => sockets.length > 0);
  ending.abort(new Error('ended with the scheduler'));
  t.same(await sending, { kind: 'retry', detail: 'ended with the scheduler' });
  await until('the connection is closed', () => sockets.every(({ destroyed }) => destroyed));
  mute.close();
  t.match(await send({ port }), { kind: 'retry', detail: /refused: is the server running, and the port right/ });
});

t.test('no text in a name adds a header, a recipient or a command', async (t) => {
  const { lines, port } = await mailServer(t, { offers: false, tls: false });
  const name = 'robot\r\nBcc: x@evil.example\r\n\r\n.\r\nRSET\r\nMAIL FROM:<x@evil.example>\r\n\u202e\u2028';
  const hostile = messageOf({ ...facts, host: name }, [line('raised', 'CRITICAL', name)], [open('CRITICAL', name)]);
  t.match(await send({ port }, undefined, hostile), { kind: 'delivered' });
  const commands = lines.filter((line) => /^(MAIL|RCPT|RSET|DATA|BDAT)\b/i.test(line));
  t.match(commands, [/^MAIL FROM:<edge-health@robot-7>/, /^RCPT TO:<ops@example\.org>/, 'DATA']);
  const mail = lines.slice(lines.indexOf('DATA') + 1, lines.indexOf('.'));
  const headers = mail.slice(0, mail.indexOf('')).filter((line) => !/^\s/.test(line));
  t.same(
    headers.map((line) => line.split(':', 1)[0]).sort(),
    [
      ...['Auto-Submitted', 'Content-Transfer-Encoding', 'Content-Type', 'Date', 'From', 'Importance', 'MIME-Version', 'Message-ID'],
      ...['Subject', 'To', 'X-Msmail-Priority', 'X-Mailer', 'X-Priority'],
    ].sort(),
  );
  t.equal(lines.filter((line) => line === '.').length, 1, 'the mail ends where it ends');
});

t.test('a server with an untrusted certificate gets neither the password nor the mail', async (t) => {
  const password = join(temporaryFolder(t), 'password');
  writeFileSync(password, 's3cret');
  const login = { user: 'robot', password_file: password };
  for (const security of ['tls', 'starttls'] as const) {
    const { lines, port } = await mailServer(t, { offers: true, tls: security === 'tls' });
    t.match(await send({ ...login, port, security }), { kind: 'retry', detail: /certificate is not trusted/ }, security);
    t.notMatch(lines.join('\n'), /AUTH|MAIL|DATA/, security);
  }
  const { lines, port } = await mailServer(t, { offers: false, tls: false });
  t.match(await send({ ...login, port, security: 'starttls' }), { kind: 'retry', detail: /does not offer STARTTLS/ });
  t.notMatch(lines.join('\n'), /AUTH|MAIL|DATA/, 'nor one from which STARTTLS was taken away');
});
