import { createServer, type Server, type Socket } from 'node:net';
import { listenOnSocket } from '../core/platform/local-socket.ts';
import { retryUntilDone } from '../core/platform/retry.ts';
import type { Log } from '../core/ports.ts';
import { isVisible, printable } from '../core/text.ts';

/** A request, one line of JSON. `requested_by` is not verified; the permissions of the socket determine who may connect. */
export interface ControlRequest {
  /** Name of a remote node; null: every stale node. */
  readonly forget: string | null;
  readonly requested_by: string;
}

/** The response, one line of JSON. `message` is readable text. */
export interface ControlAnswer {
  readonly ok: boolean;
  readonly message: string;
}

export interface ControlOptions {
  readonly path: string;
  /** Forgets a remote node; null: every stale one. */
  readonly forget: (node: string | null, requestedBy: string) => Promise<ControlAnswer>;
  readonly log: Log;
}

const MAX_REQUEST = 1024;
const MAX_NAME = 256;
const MAX_USER = 128;
const REQUEST_SECONDS = 5;
const MAX_CONNECTIONS = 8;
/** The service's user and group may connect; on an appliance the group is edge-health. */
const MODE = 0o660;

/** Accepts commands of local users on a Unix socket, which is not reachable over the network. */
export class ControlSocket {
  readonly #options: ControlOptions;
  readonly #server: Server;
  #isStopped = false;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#serve(socket));
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /** Null: not listening. */
  get path(): string | null {
    return this.#server.listening ? this.#options.path : null;
  }

  /** Resolves after the first attempt. A failure is logged, and the service runs without the socket until a later attempt succeeds. */
  start(): Promise<void> {
    const { log, path } = this.#options;
    const listen = async (): Promise<void> => {
      await listenOnSocket(this.#server, path, MODE);
      this.#server.on('error', (error) => log('warning', 'control socket failed', { path, error: error.message }));
    };
    return retryUntilDone(listen, {
      isWanted: () => !this.#isStopped,
      onFailure: ({ message }) =>
        log('warning', 'control socket not opened; edge-health nodes forget has no effect', { path, error: message }),
      onRecovery: () => log('notice', 'control socket opened', { path }),
    });
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#server.listening) this.#server.close();
  }

  #serve(socket: Socket): void {
    let text = '';
    socket.unref();
    socket.setEncoding('utf8');
    socket.setTimeout(REQUEST_SECONDS * 1000, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('data', (part: string) => {
      text = (text + part).slice(0, MAX_REQUEST + 1);
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= MAX_REQUEST) return;
      socket.removeAllListeners('data').resume();
      void this.#answer(end < 0 ? null : text.slice(0, end)).then((answer) => socket.end(`${JSON.stringify(answer)}\n`));
    });
  }

  async #answer(line: string | null): Promise<ControlAnswer> {
    const request = line === null ? null : requestOf(line);
    if (request === null) {
      const allowed = `{"forget": NODE or null, "requested_by": USER}, names of 1 to ${MAX_NAME} and 1 to ${MAX_USER} printable characters`;
      return { ok: false, message: `a request is one line of JSON of at most ${MAX_REQUEST} characters: ${allowed}` };
    }
    try {
      return await this.#options.forget(request.forget, printable(request.requested_by, MAX_USER));
    } catch (error) {
      this.#options.log('error', 'control request failed', { error: (error as Error).message });
      return { ok: false, message: 'the request failed; see the log of the service for the reason' };
    }
  }
}

function requestOf(line: string): ControlRequest | null {
  let value: Partial<ControlRequest> | null;
  try {
    value = JSON.parse(line) as Partial<ControlRequest> | null;
  } catch {
    return null;
  }
  const fits = (name: unknown, max: number): boolean => typeof name === 'string' && name.length <= max && isVisible(name);
  return (value?.forget === null || fits(value?.forget, MAX_NAME)) && fits(value?.requested_by, MAX_USER)
    ? (value as ControlRequest)
    : null;
}
