/**
 * Sends requests at a constant rate, independently of the server, and measures each latency from the scheduled time of the
 * request: a stall of the server counts for every request that it delays. (wrk cannot hold a rate, and autocannon sends the
 * requests of each second in one burst.)
 *
 * It polls without sleeping, because the delay of a timer exceeds the measured latencies, and therefore uses one core.
 */
import { connect, type Socket } from 'node:net';
import { quantile } from '../support/statistics.ts';

export interface RateReport {
  readonly sent: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly worst: number;
  /** Delay of this program in sending, 99th percentile in milliseconds; included in the latencies. */
  readonly late99: number;
}

const CONNECTIONS = 16;
const DRAIN_MS = 5000;

interface Connection {
  readonly socket: Socket;
  /** Number of the request in progress; null if idle. */
  request: number | null;
  text: string;
}

const [url, rateText, secondsText] = process.argv.slice(2) as [string, string, string];
const { hostname, port, pathname } = new URL(url);
const requestText = `GET ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: */*\r\n\r\n`;
const spacingMs = 1000 / Number(rateText);
const total = Math.round(Number(secondsText) * Number(rateText));
const latencies = new Float64Array(total);
const lateness = new Float64Array(total);
const idle: Connection[] = [];
let failed = 0;
let sent = 0;
let answered = 0;
let begunMs = 0;

const dueMs = (request: number): number => begunMs + request * spacingMs;

/** Whether the response is complete; both servers send Content-Length. */
function isComplete(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head));
  if (!length) throw new Error(`response without Content-Length:\n${text.slice(0, head)}`);
  return text.length >= head + 4 + Number(length[1]);
}

async function openConnection(): Promise<void> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const connection: Connection = { socket, request: null, text: '' };
  socket.setEncoding('latin1').on('data', (text: string) => {
    connection.text += text;
    if (connection.request === null || !isComplete(connection.text)) return;
    latencies[connection.request] = performance.now() - dueMs(connection.request);
    if (!connection.text.startsWith('HTTP/1.1 200 ')) failed += 1;
    answered += 1;
    connection.request = null;
    connection.text = '';
    idle.push(connection);
  });
  socket.on('error', () => {
    // The `close` handler reports it.
  });
  socket.on('close', () => {
    if (answered === total) return;
    throw new Error(`${url}: the server closed a connection`);
  });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  idle.push(connection);
}

function finish(): void {
  for (const { socket } of idle) socket.removeAllListeners('close').destroy();
  const of = (share: number): number => quantile(latencies, share);
  const report: RateReport = { sent, failed, p50: of(0.5), p99: of(0.99), p999: of(0.999), worst: of(1), late99: quantile(lateness, 0.99) };
  process.stdout.write(JSON.stringify(report));
}

function sendDueRequests(): void {
  const now = performance.now();
  while (sent < total && dueMs(sent) <= now && idle.length > 0) {
    const connection = idle.shift() as Connection;
    lateness[sent] = now - dueMs(sent);
    connection.request = sent;
    sent += 1;
    connection.socket.write(requestText);
  }
  if (now > dueMs(total) + DRAIN_MS) throw new Error(`${url}: ${total - answered} of ${total} requests got no response`);
  if (answered < total) setImmediate(sendDueRequests);
  else finish();
}

await Promise.all(Array.from({ length: CONNECTIONS }, openConnection));
begunMs = performance.now() + 10;
sendDueRequests();
