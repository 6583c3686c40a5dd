import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import sirv from 'sirv';
import { API_HEADERS, PAGE_HEADERS } from './security.ts';

type Files = (request: IncomingMessage, response: ServerResponse, missing: () => void) => void;

/** Serves the built dashboard. sirv lists the folder once at the start and serves only these files, so that no path leads out of it. */
export function dashboardFiles(folder: string): Files {
  if (!existsSync(folder)) return (_request, _response, missing) => missing();
  const files = sirv(folder, { etag: true });
  return (request, response, missing) => {
    guard(request, response);
    // sirv's own setHeaders option leaves out 304 responses. A browser would then apply the API's policy to the cached page and block it.
    for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
    files(request, response, () => {
      response.removeHeader('Cache-Control');
      response.setHeader('Content-Security-Policy', API_HEADERS['Content-Security-Policy']);
      missing();
    });
  };
}

/**
 * Works around three faults of sirv: a range that ends before it begins throws, a read error of a file is uncaught, and a file stays open
 * if its client disconnects.
 */
function guard(request: IncomingMessage, response: ServerResponse): void {
  delete request.headers.range;
  response.once('pipe', (file) => {
    file.once('error', () => response.destroy());
    response.once('close', () => file.destroy());
  });
}
