import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { Problem } from './problem.ts';

/** Refuses requests without the token. It compares hashes, so that the duration reveals neither content nor length of the token. */
export class TokenCheck {
  #token: string | null = null;
  #matches: ((token: string) => boolean) | null = null;

  constructor(token: string | null) {
    this.setToken(token);
  }

  get hasToken(): boolean {
    return this.#token !== null;
  }

  /** Returns whether the token has changed. */
  setToken(token: string | null): boolean {
    if (token === this.#token) return false;
    this.#token = token;
    this.#matches = token === null ? null : matcher(token);
    return true;
  }

  check(request: IncomingMessage): void {
    if (this.#matches === null) return;
    const match = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '');
    if (match && this.#matches(match[1] as string)) return;
    throw new Problem('unauthorized', 'send the token of rest.token_file as "Authorization: Bearer …"');
  }
}

/** Loads OpenSSL, which takes 3 MB, only if a token is configured. */
function matcher(expected: string): (token: string) => boolean {
  const { createHash, timingSafeEqual } = process.getBuiltinModule('node:crypto');
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(expected);
  return (token) => timingSafeEqual(digest(token), wanted);
}

/** Headers of every API response. Pages of other sites can neither frame it nor load it as an image or a script. */
export const API_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Adds the CORS headers for the configured origins, and Vary for caches. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse, allowed: readonly string[]): void {
  if (allowed.length === 0) return;
  response.setHeader('Vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined || !(allowed.includes('*') || allowed.includes(origin))) return;
  response.setHeader('Access-Control-Allow-Origin', allowed.includes('*') ? '*' : origin);
  response.setHeader('Access-Control-Expose-Headers', 'Link, Truncated, ETag, Last-Event-ID');
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
}

/**
 * Headers of the dashboard's files, in addition to API_HEADERS: no content from other origins, no framing by other sites, and revalidation
 * so that an update is seen at once. 'unsafe-inline' is for uPlot, which positions its canvas with inline styles.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'",
  'Cache-Control': 'no-cache',
};

/**
 * Headers of a report, whose page contains its own script and style. In a sandbox its origin is not that of the API, so even a manipulated
 * page can read no data of the API.
 */
export const REPORT_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox allow-scripts allow-popups",
};

const MAX_SHOWN = 100;

/**
 * Checks the host name of requests against DNS rebinding: a malicious web page can have its own host name resolve to this machine's address
 * and would then read the API as its own origin. The browser still sends that name in the Host header.
 */
export class HostCheck {
  readonly #namesOfMachine: () => readonly string[];
  #allowed: ReadonlySet<string>;

  /** `namesOfMachine` is called for each request, because a machine can get its name after the service started. */
  constructor(namesOfMachine: () => readonly string[], allowed: readonly string[]) {
    this.#namesOfMachine = namesOfMachine;
    this.#allowed = lowerCased(allowed);
  }

  /** Sets the names allowed in addition to IP addresses, localhost and this machine's own names. */
  setAllowed(allowed: readonly string[]): void {
    this.#allowed = lowerCased(allowed);
  }

  /** Why a request is refused; null: it is allowed. The host of an absolute URL, as sent to a proxy, is checked like the header. */
  problemOf({ headers: { host }, httpVersion, rawHeaders, url = '' }: IncomingMessage): Problem | null {
    if (host === undefined && httpVersion === '1.1') return new Problem('malformed_request', 'the Host header is missing');
    // Node keeps the first of several Host headers; a proxy in front of the service may have checked another one.
    if (rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1)
      return new Problem('malformed_request', 'there is more than one Host header');
    for (const given of [host, /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]]) {
      if (given === undefined || this.#isAllowed(given)) continue;
      const shown = JSON.stringify(given.slice(0, MAX_SHOWN));
      return new Problem('host_not_allowed', `${shown} is neither an address nor a name of this machine; add it to rest.allowed_hosts`);
    }
    return null;
  }

  #isAllowed(given: string): boolean {
    const { 1: address, 2: name = '' } = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(given) ?? [];
    if (address !== undefined) return isIPv6(address);
    const host = name.toLowerCase().replace(/\.$/, '');
    return isIPv4(host) || /^(.+\.)?localhost$/.test(host) || this.#allowed.has(host) || lowerCased(this.#namesOfMachine()).has(host);
  }
}

function lowerCased(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase().replace(/\.$/, '')));
}
