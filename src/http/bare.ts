import type { Socket } from 'node:net';
import { ALLOW, CODES, methodNotAllowed, Problem, type ProblemCode } from './problem.ts';
import { API_HEADERS } from './security.ts';

/** Our own longest URL is a few hundred characters. */
export const MAX_URL_LENGTH = 4096;

export interface ParseError extends NodeJS.ErrnoException {
  /** The piece in which the parser stopped. */
  readonly rawPacket?: Buffer;
}

/** Answers what is not HTTP, or too slow, or too large, on the bare socket. */
export function refuse(error: ParseError, socket: Socket): void {
  if (refused.has(socket)) return;
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const code = codeOf(error);
  answerBare(socket, new Problem(code, CODES[code].title));
}

function codeOf({ code, rawPacket }: ParseError): ProblemCode {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  if (code !== 'HPE_HEADER_OVERFLOW') return 'malformed_request';
  // The parser counts the URL as a header; where the request line ends tells which of them it was.
  const text = rawPacket?.toString('latin1') ?? '';
  const lineLength = text.includes('\n') ? text.indexOf('\n') : text.length;
  return /^[A-Z-]+ /.test(text) && lineLength > MAX_URL_LENGTH ? 'url_too_long' : 'headers_too_large';
}

/** CONNECT gets no response object from Node. */
export function refuseMethod(method: string | undefined, socket: Socket): void {
  socket.on('error', () => socket.destroy());
  if (refused.has(socket) || !socket.writable) return;
  answerBare(socket, methodNotAllowed(method), `Allow: ${ALLOW}\r\n`);
}

const GUARDS = Object.entries(API_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
/** Sockets that were answered for the last time. */
const refused = new WeakSet<Socket>();
/** How long what a refused client still sends is taken: closing at once would reset the connection, and the answer be lost. */
const LINGER_SECONDS = 1;

/** Answers a socket for the last time, and closes it. */
export function answerBare(socket: Socket, problem: Problem, headers = ''): void {
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

/** Closes a connection at once; with a reset where something was sent, so that the kernel keeps nothing of what was not read. */
export function cutOff(socket: Socket): void {
  // While libuv shuts a socket down it does not reset it, and Node would then lose it open.
  const isShuttingDown = socket.writableEnded && !socket.writableFinished;
  if (socket.bytesWritten > 0 && !isShuttingDown) socket.resetAndDestroy();
  else socket.destroy();
}

/** What a parser is told for a request after which no HTTP comes: it parses no further. */
const NO_MORE_HTTP = 2;

/**
 * A read brings 64 kB, which may be 1500 requests, and Node makes objects of all of them in one go, also after the socket was destroyed:
 * a tenth of a second for one connection. Its parser can be stopped, though that is not documented; where it cannot be, it only takes longer.
 */
export function stopParsing(socket: Socket & { readonly parser?: { onIncoming?: () => number } | null }): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => NO_MORE_HTTP;
}
