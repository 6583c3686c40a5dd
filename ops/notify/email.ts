import { connect, type Socket } from 'node:net';
import type { Config } from '../../src/config/schema.ts';
import { printable } from '../../src/core/text.ts';
import { type Message, plainText, subjectLine } from './message.ts';
import type { Result } from './queue.ts';
import { configured, networkProblem, type Sender, Unusable, withTimeout } from './sender.ts';

type EmailConfig = Config['ops']['notify']['email'];

const TIMEOUT_SECONDS = 60;
const STEP_MS = 30_000;

interface SmtpError extends Error {
  readonly code?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

function failureOf(error: SmtpError): Result {
  if (error instanceof Unusable) return { kind: 'retry', detail: error.message };
  const { code, responseCode, response } = error;
  const reply = response === undefined ? undefined : printable(response.replaceAll(/\s+/g, ' '), 200);
  if (code === 'EAUTH')
    return { kind: 'retry', detail: `the login was refused (${reply ?? error.message}); check ops.notify.email.user and password_file` };
  if (code === 'ETLS') {
    return {
      kind: 'retry',
      detail: 'the server does not offer STARTTLS; set ops.notify.email.security to tls or none, as the server requires',
    };
  }
  if (responseCode !== undefined && responseCode >= 500) {
    return { kind: 'final', detail: `the server refused it (${reply ?? responseCode}); check ops.notify.email.from and .to` };
  }
  if (reply !== undefined) return { kind: 'retry', detail: `the server does not take it now (${reply})` };
  return { kind: 'retry', detail: networkProblem(error, 'ops.notify.email.ca_file') };
}

/** Sends mail over SMTP. */
export function emailSender(config: EmailConfig, host: string, version: string): Sender {
  const from = config.from ?? `edge-health@${host}`;
  return {
    name: 'email',
    target: `${config.to.join(', ')} through ${config.host}:${config.port}`,
    send: (message, signal) =>
      withTimeout(signal, TIMEOUT_SECONDS, async (limited) => {
        let socket: Socket | null = null;
        const abort = (): void => {
          socket?.destroy(limited.reason);
        };
        limited.addEventListener('abort', abort, { once: true });
        try {
          const { createTransport } = await import('nodemailer');
          const pass =
            config.password_file === null ? '' : (await configured('ops.notify.email.password_file', config.password_file)).trim();
          const ca = config.ca_file === null ? null : await configured('ops.notify.email.ca_file', config.ca_file);
          if (limited.aborted) throw limited.reason;
          const transport = createTransport({
            host: config.host as string,
            port: config.port,
            secure: config.security === 'tls',
            requireTLS: config.security === 'starttls',
            ignoreTLS: config.security === 'none',
            connectionTimeout: STEP_MS,
            greetingTimeout: STEP_MS,
            socketTimeout: STEP_MS,
            disableFileAccess: true,
            disableUrlAccess: true,
            ...(config.user === null ? {} : { auth: { user: config.user, pass } }),
            ...(ca === null ? {} : { tls: { ca } }),
            // This socket can be destroyed on abort, and its name is resolved with /etc/hosts as well.
            getSocket: (_options, callback) => {
              const own = connect({ host: config.host as string, port: config.port, timeout: STEP_MS });
              socket = own;
              own.once('connect', () => callback(null, { connection: own }));
              own.once('timeout', () => own.destroy(new Error(`no answer within ${STEP_MS / 1000} s`)));
              own.once('error', (error) => callback(error, {}));
              own.on('error', () => undefined); // Errors after the end of the delivery.
            },
          });
          const { accepted, rejected } = await transport.sendMail(mailOf(message, { from, to: config.to, host, version }));
          const refused = rejected.length > 0 ? `, refused for ${rejected.join(', ')}` : '';
          return { kind: 'delivered', detail: `accepted for ${accepted.join(', ')}${refused}` };
        } catch (error) {
          const aborted = limited.aborted && !(error instanceof Unusable);
          return failureOf((aborted ? limited.reason : error) as SmtpError);
        } finally {
          (socket as Socket | null)?.destroy();
        }
      }),
  };
}

function mailOf(message: Message, { from, host, to, version }: { from: string; to: string[]; host: string; version: string }) {
  return {
    from,
    to,
    subject: subjectLine(message),
    text: plainText(message),
    date: new Date(message.created),
    messageId: `<${message.id}@${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Mailer': `edge-health/${version}` },
    ...(message.status === 'CRITICAL' ? { priority: 'high' as const } : {}),
  };
}
