import { connect, type Socket } from 'node:net';
import type { Config } from '../../../src/config/schema.ts';
import { printable } from '../../../src/core/text.ts';
import { plainText, subjectLine } from '../message.ts';
import { type Channel, configured, networkProblem, type Result, Unusable, withTimeout } from './channel.ts';

type EmailConfig = Config['ops']['notify']['email'];

const TIMEOUT_SECONDS = 60;
const STEP_MS = 30_000;

/** Sends mail over SMTP. */
export function emailChannel(config: EmailConfig, host: string, version: string): Channel {
  const { ca_file, password_file, port, security, to, user } = config;
  const server = config.host as string;
  return {
    name: 'email',
    target: `${to.join(', ')} through ${server}:${port}`,
    send: (message, signal) =>
      withTimeout(signal, TIMEOUT_SECONDS, async (limited) => {
        let socket: Socket | undefined;
        limited.addEventListener('abort', () => socket?.destroy(limited.reason), { once: true });
        try {
          const { createTransport } = await import('nodemailer');
          const password = await configured('ops.notify.email.password_file', password_file);
          const ca = await configured('ops.notify.email.ca_file', ca_file);
          limited.throwIfAborted();
          const transport = createTransport({
            host: server,
            port,
            secure: security === 'tls',
            requireTLS: security === 'starttls',
            ignoreTLS: security === 'none',
            connectionTimeout: STEP_MS,
            greetingTimeout: STEP_MS,
            socketTimeout: STEP_MS,
            disableFileAccess: true,
            disableUrlAccess: true,
            ...(user === null ? {} : { auth: { user, pass: password?.trim() ?? '' } }),
            ...(ca === null ? {} : { tls: { ca } }),
            // This socket can be destroyed on abort, and it resolves the server name through /etc/hosts as well.
            getSocket: (_options, callback) => {
              const own = connect({ host: server, port, timeout: STEP_MS });
              socket = own;
              own.once('connect', () => callback(null, { connection: own }));
              own.once('timeout', () => own.destroy(new Error(`no response within ${STEP_MS / 1000} s`)));
              own.once('error', (error) => callback(error, {}));
              own.on('error', () => undefined); // Ignores errors after the end of the delivery.
            },
          });
          const { accepted, rejected } = await transport.sendMail({
            from: config.from ?? `edge-health@${host}`,
            to,
            subject: subjectLine(message),
            text: plainText(message),
            date: new Date(message.created),
            messageId: `<${message.id}@${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}>`,
            headers: { 'Auto-Submitted': 'auto-generated', 'X-Mailer': `edge-health/${version}` },
            ...(message.status === 'CRITICAL' ? { priority: 'high' } : {}),
          });
          const refused = rejected.length > 0 ? `, refused for ${rejected.join(', ')}` : '';
          return { kind: 'delivered', detail: `accepted for ${accepted.join(', ')}${refused}` };
        } catch (error) {
          return failureOf((limited.aborted && !(error instanceof Unusable) ? limited.reason : error) as SmtpError);
        } finally {
          socket?.destroy();
        }
      }),
  };
}

interface SmtpError extends Error {
  readonly code?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

function failureOf(error: SmtpError): Result {
  if (error instanceof Unusable) return { kind: 'retry', detail: error.message };
  const { code, message, responseCode, response } = error;
  const reply = response === undefined ? undefined : printable(response.replaceAll(/\s+/g, ' '), 200);
  if (code === 'EAUTH')
    return { kind: 'retry', detail: `the login was refused (${reply ?? message}); check ops.notify.email.user and password_file` };
  if (code === 'ETLS') {
    const remedy = 'set ops.notify.email.security to tls or none, as the server requires';
    return { kind: 'retry', detail: `the server does not offer STARTTLS; ${remedy}` };
  }
  if (/wrong version number/.test(message)) {
    const remedy = 'set ops.notify.email.security to starttls or none, or email.port to 465';
    return { kind: 'retry', detail: `the server does not speak TLS on this port; ${remedy}` };
  }
  if (responseCode !== undefined && responseCode >= 500)
    return { kind: 'final', detail: `the server refused it (${reply ?? responseCode}); check ops.notify.email.from and .to` };
  if (reply !== undefined) return { kind: 'retry', detail: `the server does not take it now (${reply})` };
  return { kind: 'retry', detail: networkProblem(error, 'ops.notify.email.ca_file') };
}
