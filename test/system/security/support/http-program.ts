/**
 * Clients of the REST port, good and bad: `http-program.ts KIND ADDRESS PATH COUNT PAUSE_MS SOURCE…`. Connections take the source addresses
 * in turn and a pause apart. Prints `begins` when all are open, and on SIGTERM its counts as a line of JSON.
 */
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface HttpCounts {
  readonly answered: number;
  readonly failed: number;
  /** Milliseconds. */
  readonly longest: number;
  readonly statuses: Readonly<Record<string, number>>;
}

const PORT = 5000;
const [kind = '', address = '', path = '', count = '0', pauseMs = '0', ...sources] = process.argv.slice(2);
const counts = { answered: 0, failed: 0, longest: 0, statuses: {} as Record<string, number> };
const request = (headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: ${address}\r\n${headers}\r\n`;
const pause = (ms: number): Promise<void> => new Promise((later) => setTimeout(later, ms));

/** What a connection sends at once. None of the clients reads. */
const SENT: Readonly<Record<string, () => string>> = {
  unread: () => request(),
  pipeline: () => request().repeat(64),
  close: () => request('Connection: close\r\n'),
  streams: () => request(),
};

async function openAll(): Promise<void> {
  const text = SENT[kind]?.() ?? '';
  const sockets = new Set<Socket>();
  for (let n = 0; n < Number(count); n += 1) {
    const localAddress = sources[n % sources.length];
    const socket = connect({ host: address, port: PORT, ...(localAddress ? { localAddress } : {}) });
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    // The first line shows whether it is a stream; nothing else is read.
    if (kind === 'streams') socket.once('data', (data: Buffer) => note(data.toString('latin1').slice(9, 12), socket));
    else socket.pause();
    socket.write(text);
    if (Number(pauseMs) > 0 || n % 16 === 15) await pause(Number(pauseMs));
  }
}

function note(status: string, socket: Socket): void {
  counts.statuses[status] = (counts.statuses[status] ?? 0) + 1;
  socket.pause();
}

/** Requests as programs of the machine send them, each over a connection of its own. */
async function watch(): Promise<never> {
  for (;;) {
    const beganMs = performance.now();
    const status = await new Promise<number>((resolve) => {
      const asked = get({ host: address, port: PORT, path, agent: false, timeout: 5000 }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      asked.once('timeout', () => asked.destroy()).once('error', () => resolve(0));
    });
    if (status === 200) counts.answered += 1;
    else counts.failed += 1;
    counts.longest = Math.max(counts.longest, performance.now() - beganMs);
    await pause(50);
  }
}

process.on('SIGTERM', () => process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit()));
if (kind === 'watch') void watch();
else await openAll();
process.stdout.write('begins\n');
// Paused connections do not keep a process running.
setInterval(() => undefined, 1000);
