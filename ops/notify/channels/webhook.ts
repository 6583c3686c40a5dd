import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import type { Config } from '../../../src/config/schema.ts';
import { printable, withoutUrlPaths } from '../../../src/core/text.ts';
import { HOUR_MS } from '../../../src/core/time/time.ts';
import type { Message } from '../message.ts';
import { type Channel, configured, networkProblem, type Result, Unusable, withTimeout } from './channel.ts';
import { render, valuesOf } from './template.ts';

type WebhookConfig = Config['ops']['notify']['webhook'];

const TIMEOUT_SECONDS = 15;
const MAX_ANSWER_CHARACTERS = 2000;
/** The longest wait that a receiver may request. */
export const MAX_RETRY_AFTER_MS = 2 * HOUR_MS;
/** Statuses below 500 after which another attempt may succeed. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429]);

/** Posts to an address of which only `target` (scheme, host and port) is shown, because many receivers use the rest as a secret. */
export function webhookChannel(
  config: WebhookConfig,
  target: string,
  version: string,
  nowMs: () => number,
  timeoutSeconds = TIMEOUT_SECONDS,
): Channel {
  return {
    name: 'webhook',
    target,
    send: (message, signal) =>
      withTimeout(signal, timeoutSeconds, async (limited) => {
        try {
          const url = await addressOf(config);
          const body = await bodyOf(config, message);
          const token = (await configured('ops.notify.webhook.token_file', config.token_file))?.trim() ?? null;
          const ca = await configured('ops.notify.webhook.ca_file', config.ca_file);
          const headers = {
            'Content-Type': config.content_type,
            'Content-Length': Buffer.byteLength(body),
            'User-Agent': `edge-health/${version}`,
            'Idempotency-Key': message.id,
            ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
          };
          const answer = await post(url, headers, body, ca, limited);
          const text = printable(withoutSecrets(answer.text, url, token).replaceAll(/\s+/g, ' ').trim(), 200);
          return outcomeOf({ ...answer, text }, nowMs());
        } catch (error) {
          if (error instanceof Unusable) return { kind: 'retry', detail: error.message };
          return { kind: 'retry', detail: networkProblem(limited.aborted ? limited.reason : error, 'ops.notify.webhook.ca_file') };
        }
      }),
  };
}

/** The address to post to: `url`, or the first line of `url_file`. Rejects with Unusable, whose message does not contain it. */
export async function addressOf({ url, url_file: file }: WebhookConfig): Promise<URL> {
  const key = file === null ? 'ops.notify.webhook.url' : 'ops.notify.webhook.url_file';
  const text = file === null ? url : (await configured(key, file))?.split('\n', 1)[0];
  const address = URL.parse(text?.trim() ?? '');
  if (address?.protocol === 'http:' || address?.protocol === 'https:') return address;
  const found = file === null ? `${key} is no address; it` : `${key}: ${file} has no address; its first line`;
  throw new Unusable(`${found} must begin with http:// or https://`);
}

/** The body for a message: the rendered template, or the message itself. Rejects with Unusable if the template cannot be used. */
export async function bodyOf({ content_type: type, template_file: file }: WebhookConfig, message: Message): Promise<string> {
  const template = await configured('ops.notify.webhook.template_file', file);
  if (template === null) return JSON.stringify(message);
  try {
    const body = render(template, valuesOf(message), type);
    if (/\bjson\b/i.test(type)) JSON.parse(body);
    return body;
  } catch (error) {
    const reason = error instanceof SyntaxError ? `the result is not JSON (${error.message})` : (error as Error).message;
    throw new Unusable(`the template ${file} cannot be used: ${reason}; correct it, see: edge-health ops notify --test webhook --dry-run`);
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly location: string | undefined;
  /** Truncated to MAX_ANSWER_CHARACTERS. */
  readonly text: string;
}

async function post(url: URL, headers: http.OutgoingHttpHeaders, body: string, ca: string | null, signal: AbortSignal): Promise<Answer> {
  const { request } = url.protocol === 'https:' ? https : http;
  const sent = request(url, { method: 'POST', headers, agent: false, signal, ...(ca === null ? {} : { ca }) });
  const answered = once(sent, 'response', { signal }) as Promise<[http.IncomingMessage]>;
  sent.on('error', () => undefined); // Ignores an abort after the first line of the response.
  sent.end(body);
  const [response] = await answered;
  let text = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length >= MAX_ANSWER_CHARACTERS) break; // Leaving the loop closes the connection.
  }
  const { headers: received, statusCode = 0 } = response;
  return {
    status: statusCode,
    retryAfter: received['retry-after'],
    location: received.location,
    text: text.slice(0, MAX_ANSWER_CHARACTERS),
  };
}

/** Shorter parts of an address are words such as "api" and not secrets. */
const SHORTEST_SECRET = 6;

/** A response without the token and without the parts of the address it came from. */
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

/** The outcome that a response represents. */
export function outcomeOf({ location, retryAfter, status, text }: Answer, nowMs: number): Result {
  const detail = `answered ${status}${text === '' ? '' : `: ${text}`}`;
  if (status >= 200 && status < 300) return { kind: 'delivered', detail };
  if (status >= 300 && status < 400) {
    const to = URL.parse(location ?? '')?.origin;
    return {
      kind: 'final',
      detail: `${detail}; redirects are not followed: set ops.notify.webhook.url or url_file to the new address${to ? ` at ${to}` : ''}`,
    };
  }
  if (status < 500 && !TRANSIENT.has(status)) return { kind: 'final', detail: `${detail}; check ops.notify.webhook` };
  const afterMs = retryAfterMs(retryAfter, nowMs);
  return { kind: 'retry', detail, ...(afterMs === null ? {} : { afterMs }) };
}

/** Returns null for an absent or malformed header. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? null : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms));
}
