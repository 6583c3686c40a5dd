import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Result } from '../../../ops/notify/channels/channel.ts';
import { emailChannel } from '../../../ops/notify/channels/email.ts';
import { messageOf } from '../../../ops/notify/message.ts';
import { facts, line, open } from '../../../ops/notify/testing/lines.ts';
import type { Config } from '../../../src/config/schema.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { SELF_SIGNED } from '../../../testkit/ops/http-receiver.ts';
import { until } from '../../../testkit/wait.ts';
import { type Mail, MailServer, mailServerMissing, PASSWORD } from './support/mail-server.ts';

type EmailConfig = Config['ops']['notify']['email'];

const skip = mailServerMissing();
const message = messageOf(facts, [line('raised', 'CRITICAL', 'robot ü\r\nBcc: evil@example.org')], [open('CRITICAL')]);

/** The path of a file with the password. */
function passwordFile(t: Test): string {
  const password = join(temporaryFolder(t), 'password');
  writeFileSync(password, `${PASSWORD}\n`);
  return password;
}

async function server(t: Test, mode: 'starttls' | 'tls' | 'none'): Promise<MailServer> {
  const started = await MailServer.start(mode, SELF_SIGNED);
  t.teardown(() => started.stop());
  return started;
}

function send(config: Partial<EmailConfig>, signal = new AbortController().signal): Promise<Result> {
  const whole: EmailConfig = {
    host: '127.0.0.1',
    port: 1,
    security: 'none',
    user: null,
    password_file: null,
    from: null,
    to: ['ops@example.org'],
    ca_file: null,
    ...config,
  };
  return emailChannel(whole, 'robot-7', '1.2.3').send(message, signal);
}

/** The fields of a mail, unfolded, and its text. */
function read(mail: Mail | undefined): { fields: Map<string, string>; text: string } {
  const [head = '', ...body] = (mail?.content ?? '').split('\r\n\r\n');
  const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n');
  const fields = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]));
  const raw = body.join('\r\n\r\n');
  const quoted = /quoted-printable/i.test(fields.get('content-transfer-encoding') ?? '');
  const text = quoted
    ? Buffer.from(
        raw.replaceAll('=\r\n', '').replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
        'latin1',
      ).toString('utf8')
    : raw;
  return { fields, text };
}

t.test('a mail is sent over STARTTLS with a login, and has the worst status in the subject', { skip }, async (t) => {
  const password = passwordFile(t);
  const smtp = await server(t, 'starttls');
  const login = { port: smtp.port, security: 'starttls', user: 'robot', password_file: password, ca_file: SELF_SIGNED.file } as const;
  t.same(await send({ ...login, to: ['ops@example.org', 'night@example.org'] }), {
    kind: 'delivered',
    detail: 'accepted for ops@example.org, night@example.org',
  });
  await until('a mail came', () => smtp.mails.length > 0);
  t.equal(smtp.mails.length, 1);
  t.match(smtp.mails[0], { from: 'edge-health@robot-7', to: ['ops@example.org', 'night@example.org'], tls: true, login: true });
  const { fields, text } = read(smtp.mails[0]);
  t.equal(fields.get('message-id'), '<robot-7-abc-1@robot-7>');
  t.equal(fields.get('auto-submitted'), 'auto-generated');
  t.equal(fields.get('bcc'), undefined, 'no name makes a field of its own');
  t.match(fields.get('subject'), /robot-7\]|=\?UTF-8\?/);
  t.match(fields.get('x-priority'), /1/);
  t.match(text, /CRITICAL {2}temperature of robot ü\\r\\nBcc: evil@example\.org is 91\.2 °C \(threshold 85 °C\)/);
  t.match(text, /Dashboard: http:\/\/robot-7:5000/);

  t.match(await send({ ...login, ca_file: null }), { kind: 'retry', detail: /self-signed certificate.*ops\.notify\.email\.ca_file/ });
  writeFileSync(password, 'wrong');
  t.match(await send(login), { kind: 'retry', detail: /^the login was refused \(535.*check ops\.notify\.email\.user and password_file$/ });
  t.match(await send({ ...login, user: null }), { kind: 'final', detail: /the server refused it \(530/ });
  t.match(await send({ ...login, password_file: `${password}.none` }), {
    kind: 'retry',
    detail: /password_file: .* cannot be read \(ENOENT\)/,
  });
  t.equal(smtp.mails.length, 1);
});

t.test('a mail is sent over TLS from the start, and without TLS', { skip }, async (t) => {
  const password = passwordFile(t);
  const [tls, none] = await Promise.all([server(t, 'tls'), server(t, 'none')]);
  t.match(await send({ port: tls.port, security: 'tls', user: 'robot', password_file: password, ca_file: SELF_SIGNED.file }), {
    kind: 'delivered',
  });
  await until('a mail came', () => tls.mails.length > 0);
  t.match(tls.mails[0], { tls: true, login: true });
  t.match(await send({ port: none.port, from: 'Robot 7 <robot@example.org>' }), { kind: 'delivered' });
  await until('a mail came', () => none.mails.length > 0);
  t.match(none.mails[0], { from: 'robot@example.org', tls: false, login: false });
  t.match(await send({ port: none.port, security: 'starttls' }), {
    kind: 'retry',
    detail: /does not offer STARTTLS; set ops\.notify\.email\.security/,
  });
  t.equal(none.mails.length, 1, 'nothing is sent in the clear that should not be');
});

t.test('recipients may be refused permanently, temporarily and in part', { skip }, async (t) => {
  const { port } = await server(t, 'none');
  t.match(await send({ port, to: ['unknown@example.org'] }), {
    kind: 'final',
    detail: /refused it \(550 5\.1\.1 no such user here\); check ops\.notify\.email\.from and \.to/,
  });
  t.match(await send({ port, to: ['busy@example.org'] }), {
    kind: 'retry',
    detail: 'the server does not take it now (451 4.3.0 try again later)',
  });
  t.same(await send({ port, to: ['unknown@example.org', 'ops@example.org'] }), {
    kind: 'delivered',
    detail: 'accepted for ops@example.org, refused for unknown@example.org',
  });
});
