import type { Socket } from 'node:net';
import { isUnix } from './context.ts';
import { ALLOW, CODES, methodNotAllowed, Problem, type ProblemCode } from './problem.ts';
import { API_HEADERS } from './security.ts';

/** Characters. The longest URL that the API itself returns has a few hundred. */
export const MAX_URL_LENGTH = 4096;

export interface ParseError extends NodeJS.ErrnoException {
  /** The chunk of input at which the parser stopped. */
  readonly rawPacket?: Buffer;
}

/** Responds on the socket itself to input for which Node creates no response object: not HTTP, too slow or too large. */
export function refuse(error: ParseError, socket: Socket): void {
  if (refused.has(socket)) return;
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const code = codeOf(error);
  sendRawResponse(socket, new Problem(code, CODES[code].title));
}

function codeOf({ code, rawPacket }: ParseError): ProblemCode {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  if (code !== 'HPE_HEADER_OVERFLOW') return 'malformed_request';
  // The parser counts the URL as part of the headers. The length of the request line shows which of them was too long.
  const text = rawPacket?.toString('latin1') ?? '';
  const lineLength = text.includes('\n') ? text.indexOf('\n') : text.length;
  return /^[A-Z-]+ /.test(text) && lineLength > MAX_URL_LENGTH ? 'url_too_long' : 'headers_too_large';
}

/** Refuses CONNECT, for which Node creates no response object. */
export function refuseMethod(method: string | undefined, socket: Socket): void {
  socket.on('error', () => socket.destroy());
  if (refused.has(socket) || !socket.writable) return;
  sendRawResponse(socket, methodNotAllowed(method), `Allow: ${ALLOW}\r\n`);
}

const GUARDS = Object.entries(API_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
/** Sockets on which the last response was sent. */
const refused = new WeakSet<Socket>();
/** For this long, input of a refused client is read and dropped. Closing at once would reset the connection and lose the response. */
const LINGER_SECONDS = 1;

/** Sends the last response on a socket and closes it. */
export function sendRawResponse(socket: Socket, problem: Problem, headers = ''): void {
  const { status, title } = CODES[problem.code];
  const body = JSON.stringify(problem);
  refused.add(socket);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\n${headers}Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\n${GUARDS}Connection: close\r\n\r\n${body}`,
  );
  socket.resume();
  stopParsing(socket);
  const timer = setTimeout(() => socket.destroy(), LINGER_SECONDS * 1000);
  socket.once('close', () => clearTimeout(timer));
}

/**
 * Closes a connection at once. If data was sent over TCP, it is reset, so that the kernel does not keep the unread data. Unread data of a
 * Unix connection stays in the kernel until the client closes it.
 */
export function cutOff(socket: Socket): void {
  // libuv does not reset a socket that it is shutting down. Node would then leave the socket open without a reference to it.
  const isShuttingDown = socket.writableEnded && !socket.writableFinished;
  if (socket.bytesWritten > 0 && !isShuttingDown && !isUnix(socket)) socket.resetAndDestroy();
  else socket.destroy();
}

/** Return value of onIncoming() for a protocol upgrade (llhttp): the parser stops, because no HTTP follows. */
const NO_MORE_HTTP = 2;

/**
 * A single read returns up to 64 kB, which can contain 1500 requests. Node creates the objects of all of them at once, even if the socket
 * is already destroyed, which takes 0.1 s per connection. Stopping the parser is undocumented; if it fails, only that time is lost.
 */
export function stopParsing(socket: Socket & { readonly parser?: { onIncoming?: () => number } | null }): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => NO_MORE_HTTP;
}
