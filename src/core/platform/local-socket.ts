import { chmodSync, rmSync } from 'node:fs';
import { connect, type Server } from 'node:net';

/** `sun_path` has 108 octets, the last of which is zero (unix(7)). Node truncates longer paths. */
const MAX_PATH_OCTETS = 107;

/** Listens on a Unix socket with the given mode, in place of that of an earlier run; only one process may use the path. */
export async function listenOnSocket(server: Server, path: string, mode: number): Promise<void> {
  if (Buffer.byteLength(path) > MAX_PATH_OCTETS) throw new Error(`the path is longer than ${MAX_PATH_OCTETS} octets`);
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
  try {
    chmodSync(path, mode);
  } catch (error) {
    server.close();
    throw error;
  }
}

export interface ExchangeOptions {
  /** A longer response is an error. */
  readonly maxCharacters: number;
  /** The exchange is over as soon as the response contains this. */
  readonly until?: string;
  /** Timeout of the whole exchange; none by default. */
  readonly timeoutMs?: number;
  /** Closes the connection. */
  readonly signal?: AbortSignal;
}

/**
 * Sends a request (empty: none) over a Unix socket. Resolves with the response, which ends with the connection. Rejects if the socket cannot
 * be reached, with the system's error code, and if the response is incomplete or too long.
 */
export function exchange(path: string, request: string, { maxCharacters, signal, timeoutMs, until }: ExchangeOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path).setEncoding('utf8');
    let timer: NodeJS.Timeout | undefined;
    if (timeoutMs !== undefined) timer = setTimeout(() => socket.destroy(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
    signal?.addEventListener('abort', () => socket.destroy());
    if (request !== '') socket.write(request);
    let text = '';
    let previous = '';
    socket.on('data', (part: string) => {
      text += part;
      if (until !== undefined && (previous + part).includes(until)) {
        resolve(text);
        socket.destroy();
      }
      previous = part;
      if (text.length > maxCharacters) socket.destroy(new Error(`the response is longer than ${maxCharacters} characters`));
    });
    socket.once('end', () => resolve(text));
    socket.on('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error('the connection was closed without a response')); // No effect after the end of the response.
    });
  });
}
