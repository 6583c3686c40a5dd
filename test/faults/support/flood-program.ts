/**
 * Floods the REST port of an address: `flood-program.ts KIND ADDRESS SECONDS`. Prints `begins` when it begins, and at the end its counts as a
 * line of JSON. The kind `regular` sends requests as a regular client does, until SIGTERM.
 */
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';

const PORT = 5000;
const [kind = '', address = '', seconds = '10'] = process.argv.slice(2);
const counts = { opened: 0, failed: 0, closed: 0, sentBytes: 0, answers: {} as Record<string, number> };
const open = new Set<Socket>();
let isOver = false;

/** What one connection does once it is open; the response is read unless `reads` is false. */
interface Behaviour {
  readonly atOnce: number;
  readonly begin: (socket: Socket) => void;
  readonly reads?: boolean;
  /** The pause between the end of a connection and the one that replaces it. */
  readonly restMs?: number;
}

function send(socket: Socket, content: string | Buffer): void {
  if (socket.destroyed || !socket.writable) return;
  counts.sentBytes += content.length;
  socket.write(content);
}

const request = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
const every = (socket: Socket, ms: number, act: () => void): void => {
  const timer = setInterval(act, ms);
  socket.once('close', () => clearInterval(timer));
};

/** Too large, too many, endless: headers, names, lines, addresses, bodies. */
const LARGE: readonly (() => string)[] = [
  () => request('/health', `X-Large: ${'x'.repeat(1_000_000)}\r\n`),
  () => request('/health', 'X-Many: y\r\n'.repeat(100_000)),
  () => `GET /${'a'.repeat(1_000_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  () => `POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n${'b'.repeat(1_000_000)}`,
  () => `POST /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${`1;${'e'.repeat(16_000)}\r\nx\r\n`.repeat(60)}`,
  () => request('/health', `Cookie: ${'c=d; '.repeat(200_000)}\r\n`),
];

let turn = 0;
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  connections: { atOnce: 1000, begin: () => undefined, restMs: 5 },
  churn: { atOnce: 50, begin: (socket) => void socket.end() },
  resets: { atOnce: 50, begin: (socket) => void socket.resetAndDestroy() },
  loris: {
    atOnce: 600,
    begin: (socket) => {
      send(socket, 'GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
      every(socket, 1000, () => send(socket, 'z'));
    },
    restMs: 50,
  },
  garbage: {
    atOnce: 50,
    begin: (socket) => {
      turn += 1;
      send(socket, turn % 2 === 0 ? randomBytes(4096) : Buffer.concat([Buffer.from('GET /'), randomBytes(2000)]));
      if (turn % 3 === 0) socket.end();
    },
    restMs: 5,
  },
  headers: {
    atOnce: 20,
    begin: (socket) => {
      turn += 1;
      send(socket, LARGE[turn % LARGE.length]?.() ?? '');
    },
    restMs: 20,
  },
  pipelined: {
    atOnce: 60,
    begin: (socket) =>
      send(socket, request(['/health', '/status', '/metrics', '/alerts'][turn++ % 4] ?? '/').repeat(turn % 2 === 0 ? 60 : 2000)),
    reads: false,
    restMs: 200,
  },
  streams: {
    atOnce: 1000,
    // Everything since the start of the service, so that much is sent at once.
    begin: (socket) => send(socket, request('/events', 'Last-Event-ID: 1.1_1.1_1\r\n')),
    reads: false,
    restMs: 3_600_000,
  },
};

function connection(behaviour: Behaviour): void {
  if (isOver) return;
  const socket = connect({ host: address, port: PORT, noDelay: true });
  open.add(socket);
  socket.once('connect', () => {
    counts.opened += 1;
    behaviour.begin(socket);
  });
  let isFirst = true;
  const read = (chunk: Buffer): void => {
    const status = isFirst ? /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1', 0, 20))?.[1] : undefined;
    if (status) counts.answers[status] = (counts.answers[status] ?? 0) + 1;
    isFirst = false;
    // A client that does not read receives the start of the response, and nothing after it.
    if (behaviour.reads === false) socket.pause();
  };
  socket.on('data', read);
  socket.on('error', () => {
    if (!isOver) counts.failed += 1;
  });
  socket.once('close', () => {
    open.delete(socket);
    if (isOver) return;
    counts.closed += 1;
    setTimeout(() => connection(behaviour), behaviour.restMs ?? 0);
  });
}

/** Requests /health four times a second, each time over a new connection. */
async function regular(): Promise<void> {
  const tookMs: number[] = [];
  let failed = 0;
  const request = (): Promise<void> =>
    new Promise((done) => {
      const began = performance.now();
      const sent = get({ host: address, port: PORT, path: '/health', agent: false, timeout: 10_000 }, (response) => {
        response.resume().once('end', () => {
          if (response.statusCode === 200) tookMs.push(performance.now() - began);
          else failed += 1;
          done();
        });
        response.once('error', () => sent.destroy());
      });
      sent.on('timeout', () => sent.destroy(new Error('no response in time')));
      sent.on('error', () => {
        failed += 1;
        done();
      });
    });
  process.once('SIGTERM', () => {
    isOver = true;
  });
  process.stdout.write('begins\n');
  while (!isOver) {
    await request();
    await new Promise((later) => setTimeout(later, 250));
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  process.stdout.write(
    `${JSON.stringify({ served: sorted.length, failed, medianMs: sorted[sorted.length >> 1] ?? null, mostMs: sorted.at(-1) ?? null })}\n`,
  );
}

async function flood(behaviour: Behaviour): Promise<void> {
  process.stdout.write('begins\n');
  for (let i = 0; i < behaviour.atOnce; i += 1) {
    connection(behaviour);
    if (i % 20 === 19) await new Promise((later) => setTimeout(later, 5));
  }
  await Promise.race([
    new Promise((later) => setTimeout(later, Number(seconds) * 1000)),
    new Promise((later) => process.once('SIGTERM', later)),
  ]);
  isOver = true;
  process.stdout.write(`${JSON.stringify({ ...counts, stillOpen: open.size })}\n`);
  for (const socket of open) socket.destroy();
  // Timers of connections that would be opened again are dropped.
  process.exit();
}

const behaviour = BEHAVIOURS[kind];
if (kind === 'regular') await regular();
else if (behaviour) await flood(behaviour);
else throw new Error(`kinds: regular, ${Object.keys(BEHAVIOURS).join(', ')}`);
