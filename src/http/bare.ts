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

function answerBare(socket: Socket, problem: Problem, headers = ''): void {
  const { status, title } = CODES[problem.code];
  const body = JSON.stringify(problem);
  refused.add(socket);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\n${headers}Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\n${GUARDS}Connection: close\r\n\r\n${body}`,
  );
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_SECONDS * 1000);
  socket.once('close', () => clearTimeout(timer));
}
