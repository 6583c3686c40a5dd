import * as http from 'node:http';
import * as https from 'node:https';
import type { Config } from '../../src/config/schema.ts';
import { printable, withoutUrlPaths } from '../../src/core/text.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import { type Message, plainText, subjectLine } from './message.ts';
import type { Result } from './queue.ts';
import { configured, type Sender, troubleOf, Unusable, withDeadline } from './sender.ts';
import { escaperOf, parseTemplate, render } from './template.ts';

type WebhookConfig = Config['ops']['notify']['webhook'];

const DEADLINE_SECONDS = 15;
const MAX_ANSWER_BYTES = 2000;
/** The longest wait that a receiver may ask for. */
export const MAX_RETRY_AFTER_MS = 2 * HOUR_MS;
const NOW_AND_THEN: ReadonlySet<number> = new Set([408, 425, 429]);

/** What a template may use: the message's own names, and what is made of them. */
export function placeholders(message: Message): Readonly<Record<string, unknown>> {
  const { alerts, status } = message;
  return {
    ...message,
    alerts: alerts.map((alert) => ({ ...alert, is_over: alert.state === 'resolved' || alert.state === 'passed' })),
    count: alerts.length + message.omitted,
    subject: subjectLine(message),
    text: plainText(message),
    is_critical: status === 'CRITICAL',
    is_error: status === 'ERROR',
    is_warning: status === 'WARNING',
    is_resolved: status === 'RESOLVED',
    is_test: status === 'TEST',
  };
}

/** The body of a message: the template filled in, or the message itself. Throws Unusable for a template that cannot be used. */
export async function bodyOf({ content_type: type, template_file: file }: WebhookConfig, message: Message): Promise<string> {
  if (file === null) return JSON.stringify(message);
  const text = await configured('ops.notify.webhook.template_file', file);
  try {
    const body = render(parseTemplate(text), placeholders(message), escaperOf(type));
    if (/\bjson\b/i.test(type)) JSON.parse(body);
    return body;
  } catch (error) {
    const what = error instanceof SyntaxError ? `what it gives is not JSON (${error.message})` : (error as Error).message;
    throw new Unusable(`the template ${file} cannot be used: ${what}; correct it, see: edge-health ops notify --test webhook --dry-run`);
  }
}

/** Null: not said, or not to be understood. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? null : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms));
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly location: string | undefined;
  readonly text: string;
}

/** What an answer means for the notification. */
export function judged({ location, retryAfter, status, text }: Answer, nowMs: number): Result {
  const said = `answered ${status}${text === '' ? '' : `: ${text}`}`;
  if (status >= 200 && status < 300) return { kind: 'delivered', detail: said };
  if (status >= 300 && status < 400) {
    const to = URL.parse(location ?? '')?.origin;
    return {
      kind: 'final',
      detail: `${said}; redirects are not followed: set ops.notify.webhook.url or url_file to the new address${to ? ` at ${to}` : ''}`,
    };
  }
  if (status < 500 && !NOW_AND_THEN.has(status)) return { kind: 'final', detail: `${said}; check ops.notify.webhook` };
  const afterMs = retryAfterMs(retryAfter, nowMs);
  return { kind: 'retry', detail: said, ...(afterMs === null ? {} : { afterMs }) };
}

/** Where to post to, as it is now: `url`, or the first line of `url_file`. Rejects with Unusable, which does not repeat it. */
export async function addressOf({ url, url_file: file }: WebhookConfig): Promise<URL> {
  const key = file === null ? 'ops.notify.webhook.url' : 'ops.notify.webhook.url_file';
  const text = file === null ? (url ?? '') : ((await configured(key, file)).split('\n', 1)[0] as string);
  const address = URL.parse(text.trim());
  if (address?.protocol === 'http:' || address?.protocol === 'https:') return address;
  const what = file === null ? `${key} is no address; it` : `${key}: ${file} has no address; its first line`;
  throw new Unusable(`${what} must begin with http:// or https://`);
}

/** Shorter parts of an address are words such as "api" rather than secrets. */
const SHORTEST_SECRET = 6;

/** An answer in which neither the address it was sent to nor the token is repeated. */
function withoutSecrets(text: string, { href, password, pathname, search, searchParams, username }: URL, token: string | null): string {
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password].flatMap((part) => [part, decoded(part)]);
  const secrets = [token ?? '', href, `${pathname}${search}`, ...parts].filter(({ length }) => length >= SHORTEST_SECRET);
  return withoutUrlPaths(secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Posts to an address. Of it only `target`, its scheme, host and port, is shown: with many receivers the rest is the secret. */
export function webhookSender(
  config: WebhookConfig,
  target: string,
  version: string,
  nowMs: () => number,
  deadlineSeconds = DEADLINE_SECONDS,
): Sender {
  return {
    name: 'webhook',
    target,
    send: async (message, signal) => {
      const deadline = withDeadline(signal, deadlineSeconds);
      try {
        const url = await addressOf(config);
        const body = await bodyOf(config, message);
        const token = config.token_file === null ? null : (await configured('ops.notify.webhook.token_file', config.token_file)).trim();
        const ca = config.ca_file === null ? null : await configured('ops.notify.webhook.ca_file', config.ca_file);
        const headers = {
          'Content-Type': config.content_type,
          'Content-Length': Buffer.byteLength(body),
          'User-Agent': `edge-health/${version}`,
          'Idempotency-Key': message.id,
          ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        };
        const answer = await post(url, headers, body, ca, deadline.signal);
        return judged({ ...answer, text: printable(withoutSecrets(answer.text, url, token).replaceAll(/\s+/g, ' ').trim(), 200) }, nowMs());
      } catch (error) {
        return { kind: 'retry', detail: error instanceof Unusable ? error.message : troubleOf(error, 'ops.notify.webhook.ca_file') };
      } finally {
        deadline.done();
      }
    },
  };
}

function post(url: URL, headers: http.OutgoingHttpHeaders, body: string, ca: string | null, signal: AbortSignal): Promise<Answer> {
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(signal.aborted ? signal.reason : error);
    const sent = request(url, { method: 'POST', headers, agent: false, signal, ...(ca === null ? {} : { ca }) }, (response) => {
      const { headers: said, statusCode = 0 } = response;
      let text = '';
      const finish = (): void => resolve({ status: statusCode, retryAfter: said['retry-after'], location: said.location, text });
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text = (text + chunk).slice(0, MAX_ANSWER_BYTES);
        if (text.length < MAX_ANSWER_BYTES) return;
        finish();
        sent.destroy();
      });
      response.once('end', finish);
      response.once('error', fail);
    });
    sent.on('error', fail);
    sent.end(body);
  });
}
