import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import sirv from 'sirv';
import { API_HEADERS, PAGE_HEADERS } from './security.ts';

type Files = (request: IncomingMessage, response: ServerResponse, missing: () => void) => void;

/** Serves the built dashboard: exactly the files that were in its folder at the start, so that no path leads out of it. */
export function dashboardFiles(folder: string): Files {
  if (!existsSync(folder)) return (_request, _response, missing) => missing();
  const files = sirv(folder, { etag: true });
  return (request, response, missing) => {
    guard(request, response);
    // Before sirv, whose own setHeaders leaves a 304 out: a browser would take the API's policy from that, and show nothing.
    for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
    files(request, response, () => {
      response.removeHeader('Cache-Control');
      response.setHeader('Content-Security-Policy', API_HEADERS['Content-Security-Policy']);
      missing();
    });
  };
}

/**
 * What sirv leaves out: a range that ends before it begins would be an exception, a file that cannot be read one that nobody
 * catches, and the file of a client that went away would stay open for good.
 */
function guard(request: IncomingMessage, response: ServerResponse): void {
  delete request.headers.range;
  response.once('pipe', (file) => {
    file.once('error', () => response.destroy());
    response.once('close', () => file.destroy());
  });
}
