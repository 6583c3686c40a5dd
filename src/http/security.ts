import type { IncomingMessage, ServerResponse } from 'node:http';
import { Problem } from './problem.ts';

/** Refuses requests without the token; hashes first, so that the comparison tells nothing by its time. */
export class TokenGate {
  #token: string | null = null;
  #matches: ((token: string) => boolean) | null = null;

  constructor(token: string | null) {
    this.setToken(token);
  }

  get isOpen(): boolean {
    return this.#token === null;
  }

  /** Whether that changed anything. */
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

/** OpenSSL takes 3 MB when it is first used: only where a token is configured. */
function matcher(expected: string): (token: string) => boolean {
  const { createHash, timingSafeEqual } = process.getBuiltinModule('node:crypto');
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(expected);
  return (token) => timingSafeEqual(digest(token), wanted);
}

/** Headers of every answer: no page of another site shows it, or loads it as an image or a script. */
export const API_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Lets the configured origins read across origins; says so to caches. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse, allowed: readonly string[]): void {
  if (allowed.length === 0) return;
  response.setHeader('Vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined || !(allowed.includes('*') || allowed.includes(origin))) return;
  response.setHeader('Access-Control-Allow-Origin', allowed.includes('*') ? '*' : origin);
  response.setHeader('Access-Control-Expose-Headers', 'Link, Truncated, ETag, Last-Event-ID');
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
}

/** Headers of the dashboard's files beside those of every answer: nothing from elsewhere, no framing, requested again after an update. uPlot places its canvas with inline styles. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'",
  'Cache-Control': 'no-cache',
};
