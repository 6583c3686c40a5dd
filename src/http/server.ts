import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import polka from 'polka';
import sirv from 'sirv';
import { localAddress } from '../core/platform/local-address.ts';
import { listenOnSocket } from '../core/platform/local-socket.ts';
import { LOW_PORT_REMEDY } from '../core/platform/privileges.ts';
import { retryUntilDone } from '../core/platform/retry.ts';
import type { Log, SocketBounds } from '../core/ports.ts';
import { retryPauseMs } from '../core/time/time.ts';
import { type ApiPath, parameters } from './api/query-schema.ts';
import type { StatusDocument } from './api/schema.ts';
import { Connections, type Serve, WRITE_SECONDS } from './connections.ts';
import { type Context, type Handler, MAX_STORE_QUERIES, markAsUnix, Semaphore, type Shared, TurnQueue } from './context.ts';
import { EventHub } from './events.ts';
import { aggregate } from './handlers/aggregate.ts';
import { alert, alerts } from './handlers/alerts.ts';
import { events } from './handlers/events.ts';
import { health } from './handlers/health.ts';
import { history } from './handlers/history.ts';
import { metrics } from './handlers/metrics.ts';
import { openapi } from './handlers/openapi.ts';
import { reports } from './handlers/reports.ts';
import { snapshot } from './handlers/snapshot.ts';
import { status } from './handlers/status.ts';
import { parseQuery } from './parameters.ts';
import { ALLOW, methodNotAllowed, Problem, sendProblem } from './problem.ts';
import { MAX_URL_LENGTH, type ParseError, refuse, refuseMethod } from './raw-response.ts';
import { API_HEADERS, allowOrigin, HostCheck, PAGE_HEADERS, TokenCheck } from './security.ts';
import type { FindUsers } from './shares.ts';
import type { ServiceView } from './view.ts';

interface RestOptions {
  /** Null: all addresses. */
  readonly host: string | null;
  readonly port: number;
  readonly token: string | null;
  readonly allowedOrigins: readonly string[];
  /** Host names allowed in requests, in addition to IP addresses and the names of this machine. */
  readonly allowedHosts: readonly string[];
  /** The names of this machine as last read; and reads them again for a request to another name. */
  readonly machineNames: { names(): readonly string[]; readAgain(): Promise<void> };
  readonly maxConnections: number;
  readonly maxEventStreams: number;
  readonly findUsers: FindUsers;
  /** Bounds the kernel's buffers of each connection of a listening socket; false: not supported. */
  readonly boundSockets: (descriptor: number, bounds: SocketBounds) => boolean;
  /** User id of the client of a Unix connection; null: unknown. */
  readonly peerUser: (descriptor: number) => number | null;
  /** Smaller in tests. */
  readonly maxUnread?: number;
  /** Timeout for the headers of a request; shorter in tests. */
  readonly headersSeconds?: number;
  /** The built dashboard, and the OpenAPI document. */
  readonly dashboardFolder: string;
  readonly openapiFile: string;
  readonly view: ServiceView;
  readonly log: Log;
}

/**
 * Send buffer of a connection (SO_SNDBUF); the kernel doubles it for its own bookkeeping. Below 40 kB, a segment of the loopback interface
 * does not fit, and a client on this host waits 40 ms for every few segments.
 */
const SEND_BYTES = 64 * 1024;
/** Receive buffer of a connection (SO_RCVBUF); a request has a few kilobytes. */
const RECEIVE_BYTES = 16 * 1024;
/** The same for the Unix socket, of which the kernel keeps unread data until the client closes the connection. */
const UNIX_SEND_BYTES = 8 * 1024;
/**
 * After this many Unix connections of other users whose responses the kernel may keep, in this process's memory limit, only root and the
 * service's user may connect until the next start. Clients that read their responses do not count.
 */
const MAX_UNREAD = 1000;
/** Every user of this machine may connect to the Unix socket, as over TCP. The token is required on both. */
const UNIX_MODE = 0o666;
/** Timeout of the kernel for unread data. It is longer than WRITE_SECONDS, so that normally this process drops the client and counts it. */
const UNREAD_SECONDS = 1.5 * WRITE_SECONDS;
/** Limits of a single client. */
const MAX_HEADER_BYTES = 8192;
const HEADERS_SECONDS = 10;
/** Longer on the Unix socket: each check wakes the process up, and its users' connections are limited anyway. */
const UNIX_HEADERS_SECONDS = 60;
const REQUEST_SECONDS = 15;
const KEEP_ALIVE_SECONDS = 30;
/** Checks for incomplete requests within the timeout of the headers. */
const CHECKS = 5;
const MAX_REQUESTS_PER_SOCKET = 100_000;

/** The REST API, the event streams and the dashboard. */
export class RestServer {
  readonly #options: RestOptions;
  readonly #server: Server;
  /** Listens on the Unix socket. */
  readonly #unixServer: Server;
  readonly #connections: Connections;
  /** Unix connections of other users that this process closed before the client did. */
  #unread = 0;
  /** Publishes to every reader of /events. */
  readonly events: EventHub;
  readonly #tokenCheck: TokenCheck;
  readonly #hosts: HostCheck;
  readonly #shared: Shared;
  #problem: string | null = null;
  #failures = 0;
  #retryTimer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(options: RestOptions) {
    this.#options = options;
    this.#tokenCheck = new TokenCheck(options.token);
    this.#hosts = new HostCheck(() => options.machineNames.names(), options.allowedHosts);
    this.#shared = { view: options.view, store: new Semaphore(MAX_STORE_QUERIES), turns: new TurnQueue() };
    this.events = new EventHub({
      history: options.view.history,
      max: options.maxEventStreams,
      clients: {
        clientOf: (socket) => this.#connections.clientOf(socket),
        lookUpUsers: () => this.#connections.lookUpUsers(),
      },
    });
    this.#server = this.#createServer(options.headersSeconds ?? HEADERS_SECONDS);
    this.#unixServer = this.#createServer(UNIX_HEADERS_SECONDS)
      .on('connection', (socket) => this.#acceptUnix(socket))
      // Each connection ends with its response. One kept open would be closed here when idle, and count as unread (#acceptUnix).
      .on('request', (_request, response) => {
        response.shouldKeepAlive = false;
      });
    this.#connections = new Connections(this.#server, {
      max: options.maxConnections,
      serve: this.#routes(),
      turns: this.#shared.turns,
      findUsers: options.findUsers,
      onDrop: (response) => this.events.countDropped(response),
    });
    this.#connections.add(this.#unixServer);
  }

  #createServer(headersSeconds: number): Server {
    const server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersSeconds * 1000,
      requestTimeout: Math.max(headersSeconds, REQUEST_SECONDS) * 1000,
      keepAliveTimeout: KEEP_ALIVE_SECONDS * 1000,
      connectionsCheckingInterval: (headersSeconds / CHECKS) * 1000,
      // Node's own response to a request without Host is not a problem document; HostCheck provides one.
      requireHostHeader: false,
    });
    server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET;
    server.on('clientError', (error: ParseError, socket: Socket) => {
      // A second response would corrupt the one being sent.
      if (this.#connections.isBusy(socket)) socket.destroy();
      else refuse(error, socket);
    });
    server.on('connect', ({ method }: IncomingMessage, socket: Socket) => refuseMethod(method, socket));
    return server;
  }

  /**
   * Listens; resolves with the address. If the port is in use, or for any other error, resolves with null after the first attempt, and
   * repeats it with growing pauses until `stop`, because monitoring does not need REST.
   */
  start(): Promise<AddressInfo | null> {
    return new Promise((resolve) => {
      this.#server.on('listening', () => {
        if (this.#isStopped) this.#server.close();
        else this.#onListening();
        resolve(this.address);
      });
      this.#server.on('error', (error) => {
        if (this.#server.listening) this.#options.log('error', 'REST server failed', { error: error.message });
        else this.#retry(error);
        resolve(null);
      });
      this.#listen();
    });
  }

  #listen(): void {
    const { host, port } = this.#options;
    this.#server.listen({ port, ...(host === null ? {} : { host }) });
  }

  #onListening(): void {
    this.#boundBuffers(this.#server, SEND_BYTES);
    if (this.#problem === null) return;
    this.#problem = null;
    this.#failures = 0;
    this.#options.log('notice', 'REST API listening', { address: this.address?.address, port: this.address?.port });
  }

  #retry(error: NodeJS.ErrnoException): void {
    if (this.#isStopped) return;
    const problem = listenProblem(error, this.#options);
    if (problem !== this.#problem) this.#options.log('error', 'REST API not listening; will retry', { problem });
    this.#problem = problem;
    this.#failures += 1;
    this.#retryTimer = setTimeout(() => this.#listen(), retryPauseMs(this.#failures));
  }

  /** Why it does not listen, and what to do; null: it listens, or was not started. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The address it listens on; null: not listening. */
  get address(): AddressInfo | null {
    return this.#server.address() as AddressInfo | null;
  }

  /**
   * Listens on a Unix socket as well, through which programs of this machine reach this service and no other. Resolves after the first
   * attempt; a failure is logged, and the attempt repeated until `stop`.
   */
  listenOnSocket(path: string): Promise<void> {
    const { log } = this.#options;
    const listen = async (): Promise<void> => {
      await listenOnSocket(this.#unixServer, path, UNIX_MODE);
      this.#unixServer.on('error', (error) => log('error', 'REST socket failed', { path, error: error.message }));
    };
    return retryUntilDone(listen, {
      isWanted: () => !this.#isStopped,
      onFailure: ({ message }) => log('error', 'REST socket not opened; commands of this machine need --url', { path, error: message }),
      onRecovery: () => log('notice', 'REST socket opened', { path }),
    });
  }

  #acceptUnix(socket: Socket & { readonly _handle?: { readonly fd?: number } }): void {
    markAsUnix(socket);
    this.#boundBuffers(socket, UNIX_SEND_BYTES);
    const { maxUnread = MAX_UNREAD, peerUser } = this.#options;
    const user = peerUser(socket._handle?.fd ?? -1);
    if (user === 0 || (user !== null && user === process.getuid?.())) return;
    if (this.#unread >= maxUnread) {
      socket.destroy();
      return;
    }
    socket.once('close', () => {
      if (socket.readableEnded || socket.errored || socket.bytesWritten === 0) return; // The client has closed it.
      this.#unread += 1;
      if (this.#unread === maxUnread) this.#options.log('error', 'REST socket closed to other users: too many responses not read');
    });
  }

  /** A TCP connection inherits the options of the listening socket, a Unix connection does not. Node exposes descriptors only in the handle. */
  #boundBuffers(socket: (Server | Socket) & { readonly _handle?: { readonly fd?: number } }, sendBytes: number): void {
    const { _handle: handle } = socket;
    const bounds = { sendBytes, receiveBytes: RECEIVE_BYTES, unreadSeconds: UNREAD_SECONDS };
    if (handle?.fd !== undefined) this.#options.boundSockets(handle.fd, bounds);
  }

  /** Stops listening and ends the event streams. Idle connections are closed at once, the others after their response or after 1 s. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#retryTimer) clearTimeout(this.#retryTimer);
    const servers = [this.#server, this.#unixServer].filter(({ listening }) => listening);
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
    this.events.stop();
    for (const server of servers) server.closeIdleConnections();
    const timer = setTimeout(() => {
      for (const server of servers) server.closeAllConnections();
    }, 1000);
    await Promise.all(closed);
    clearTimeout(timer);
  }

  /** Sets the required token; if it has changed, open event streams are ended. */
  setToken(token: string | null): void {
    if (this.#tokenCheck.setToken(token)) this.events.stop();
  }

  /** Sets the host names allowed in addition to IP addresses and the names of this machine. */
  setAllowedHosts(names: readonly string[]): void {
    this.#hosts.setAllowed(names);
  }

  counts(): StatusDocument['rest'] {
    return {
      problem: this.#problem,
      connections: this.#connections.count,
      event_streams: this.events.count,
      evicted_connections: this.#connections.evicted,
      dropped_connections: this.#connections.dropped,
      dropped_event_streams: this.events.dropped,
    };
  }

  #routes(): Serve {
    const { dashboardFolder, openapiFile, view } = this.#options;
    const counts = (): StatusDocument['rest'] => this.counts();
    const handlers: Record<ApiPath, Handler> = {
      '/health': health,
      '/health/history': history,
      '/health/aggregate': aggregate,
      '/alerts': alerts,
      '/alerts/{alert_id}': alert,
      '/status': status(view, counts),
      '/events': events(this.events),
      '/reports': reports,
      '/metrics': metrics(view, counts),
      '/snapshot': snapshot(() => this.#tokenCheck.hasToken),
      '/openapi.json': openapi(openapiFile),
    };
    const files = dashboardFiles(dashboardFolder);
    const app = polka({
      onError: (error, request, response) => this.#answerError(error as unknown as Error, request, response),
      // A path that is not in the API is looked up among the dashboard's files; if it is not there either, a problem document is sent.
      onNoMatch: (request, response) => files(request, response, () => sendProblem(response, noSuchPath(request))),
    });
    for (const [path, handler] of Object.entries(handlers)) {
      const serve = (request: IncomingMessage, response: ServerResponse): void => this.#serve(path as ApiPath, handler, request, response);
      const pattern = path.replace(/\{.*/, '*');
      app.get(pattern, serve);
      app.head(pattern, serve);
    }
    app.get('/reports/:name', redirectToReport);
    app.head('/reports/:name', redirectToReport);
    const answer = (request: IncomingMessage, response: ServerResponse, areNamesRead: boolean): void => {
      try {
        const problem = this.#hosts.problemOf(request) ?? this.#refusal(request);
        if (!problem) (app.handler as Serve)(request, response);
        // The machine may have got the name since its names were read.
        else if (problem.code === 'host_not_allowed' && !areNamesRead)
          void this.#options.machineNames.readAgain().then(() => answer(request, response, true));
        else if (problem.code === 'method_not_allowed' && isPreflight(request, response)) preflight(response);
        else sendProblem(response, problem, headersOf(problem));
      } catch (error) {
        this.#answerError(error as Error, request, response); // An unexpected error in a request must not stop the service.
      }
    };
    return (request, response) => {
      // Node's own header sets a timer for the end of the second, which is a wake-up after each request.
      response.setHeader('Date', new Date().toUTCString());
      for (const [name, value] of Object.entries(API_HEADERS)) response.setHeader(name, value);
      allowOrigin(request, response, this.#options.allowedOrigins);
      answer(request, response, false);
    };
  }

  /** Why a request is refused before any handler runs; null: it is not. */
  #refusal(request: IncomingMessage): Problem | null {
    // Some clients send an absolute URL, as to a proxy.
    request.url = request.url?.replace(/^https?:\/\/[^/?]*\/?/i, '/') ?? '';
    const { url } = request;
    if (url.length > MAX_URL_LENGTH) return new Problem('url_too_long', `the URL has ${url.length} characters; at most ${MAX_URL_LENGTH}`);
    if (!url.startsWith('/')) return new Problem('malformed_url', 'the URL must begin with /');
    try {
      decodeURIComponent(url.split('?')[0] ?? '');
    } catch {
      return new Problem('malformed_url', 'the path has a malformed percent-encoding');
    }
    return request.method === 'GET' || request.method === 'HEAD' ? null : methodNotAllowed(request.method);
  }

  #serve(path: ApiPath, handler: Handler, request: IncomingMessage, response: ServerResponse): void {
    const fail = (error: unknown): void => this.#answerError(error as Error, request, response);
    try {
      this.#tokenCheck.check(request);
      const query = parseQuery(path, (request.url ?? '').split('?').slice(1).join('?'));
      const hold = (body: object, bytes: number): void => this.#connections.hold(request.socket, body, bytes);
      const context: Context = { ...this.#shared, request, response, path, query, hold };
      const done = handler(context);
      if (done) done.catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  #answerError(error: Error, request: IncomingMessage, response: ServerResponse): void {
    if (response.destroyed) return; // The client has disconnected.
    if (error instanceof Problem) {
      sendProblem(response, error, headersOf(error));
      return;
    }
    this.#options.log('error', 'HTTP request failed', { path: request.url?.slice(0, 200), error: error.message });
    sendProblem(response, new Problem('internal_error', 'see the log of the service'));
  }
}

function listenProblem({ code, message }: NodeJS.ErrnoException, { host, port }: Pick<RestOptions, 'host' | 'port'>): string {
  if (code === 'EADDRINUSE') return `port ${port} is in use; stop the other program or set another rest.port`;
  const failed = `cannot listen on ${host ?? 'all addresses'}, port ${port}: ${message}`;
  if (code === 'EACCES') return `${failed}; ${LOW_PORT_REMEDY}`;
  return code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' ? `${failed}; set rest.host to an address of this machine` : failed;
}

/** `/reports/NAME`, as a person types it. The reference is relative, because a reverse proxy may serve the API below a prefix. */
function redirectToReport(request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query] = (request.url ?? '').split('?');
  const name = encodeURIComponent(decodeURIComponent(path.split('/')[2] ?? ''));
  response.writeHead(308, { Location: `../reports?name=${name}${query ? `&${query}` : ''}` }).end();
}

function headersOf(problem: Problem): Record<string, string> {
  if (problem.code === 'method_not_allowed') return { Allow: ALLOW };
  if (problem.code === 'snapshot_in_progress') return { 'Retry-After': '10' };
  return problem.code === 'unauthorized' ? { 'WWW-Authenticate': 'Bearer realm="edge-health"' } : {};
}

function noSuchPath(request: IncomingMessage): Problem {
  return new Problem('not_found', `no such path: ${(request.url ?? '').slice(0, 100)}; the API has ${Object.keys(parameters).join(', ')}`);
}

function isPreflight({ method }: IncomingMessage, response: ServerResponse): boolean {
  return method === 'OPTIONS' && response.hasHeader('Access-Control-Allow-Origin');
}

function preflight(response: ServerResponse): void {
  response.writeHead(204, {
    'Access-Control-Allow-Methods': 'GET, HEAD',
    'Access-Control-Allow-Headers': 'Authorization, Last-Event-ID, If-None-Match',
    'Access-Control-Max-Age': '600',
  });
  response.end();
}

const TIMEOUT_SECONDS = 2;

/** Whether the REST server at this address responds. The test uses a real connection, as any client does. */
export function restAnswers({ address, port }: AddressInfo): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: localAddress(address), port });
    const end = (hasResponded: boolean): void => {
      socket.destroy();
      resolve(hasResponded);
    };
    socket.setTimeout(TIMEOUT_SECONDS * 1000, () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
    // Any HTTP status counts as a response: the server returns 401 if a token is configured.
    socket.on('data', (bytes) => end(bytes.toString('latin1').startsWith('HTTP/1.1 ')));
    socket.write('HEAD /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: edge-health\r\nConnection: close\r\n\r\n');
  });
}

type Files = (request: IncomingMessage, response: ServerResponse, missing: () => void) => void;

/** Serves the built dashboard. sirv lists the folder once at the start and serves only these files, so that no path leads out of it. */
function dashboardFiles(folder: string): Files {
  if (!existsSync(folder)) return (_request, _response, missing) => missing();
  const files = sirv(folder, {
    etag: true,
    brotli: true,
    gzip: true,
    // sirv replaces the header that the origins need.
    setHeaders: (response) => response.setHeader('Vary', 'Accept-Encoding, Origin'),
  });
  return (request, response, missing) => {
    guard(request, response);
    // sirv's own setHeaders option skips 304 responses. A browser would then apply the API's policy to the cached page and block it.
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
