/**
 * Sends mutated RTPS datagrams and mutated HTTP to a service at an address: `fuzzer-program.ts ADDRESS SECONDS SEED [OWN_ADDRESS]`. With
 * OWN_ADDRESS most datagrams are in the name of the real participant there, on the same host. Prints what it has sent as a line of JSON,
 * and ends. The rates are bounded, and it stops by itself.
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { randomFrom } from '../../../../src/rtps/testing/random.ts';
import { recorded } from '../../../../src/rtps/testing/recorded.ts';
import { MULTICAST_GROUP, ports } from '../../../../src/rtps/wire/protocol.ts';
import { mutated, redirected, type Target } from '../../../fuzz/rtps/mutations.ts';

const [address = '', seconds = '10', seed = '1', ownAddress = null] = process.argv.slice(2);
const HTTP_PORT = 5000;
const ROUND_MS = 20;
const DATAGRAMS_PER_ROUND = 10;
const CONNECTIONS = 8;
/** Kinds of user entities: writers and readers with and without key. */
const WRITER_KINDS = [0x02, 0x03];
const READER_KINDS = [0x04, 0x07];
/** Of the prefix of the sender in a datagram. */
const [PREFIX_START, PREFIX_END] = [8, 20];
const KEYS = Array.from({ length: 24 }, (_, i) => i + 1);

const random = randomFrom(Number(seed));
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
const corpus = recorded().map(({ datagram }) => datagram);
const sent = { datagrams: 0, requests: 0, answers: 0 };
let isOver = false;

const REQUESTS = [
  'GET /health HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n',
  'GET /health/history?hours=1&limit=5 HTTP/1.1\r\nHost: 10.0.0.1\r\nAccept: text/csv\r\n\r\n',
  'GET /health/aggregate?by=minute&from=2026-01-01T00:00:00Z HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n',
  'GET /alerts?severity=CRITICAL&cursor=abc HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n',
  'GET /status HTTP/1.1\r\nHost: 10.0.0.1\r\nIf-None-Match: "x"\r\n\r\n',
  'GET /events?events=health,alert HTTP/1.1\r\nHost: 10.0.0.1\r\nLast-Event-ID: 1-2-3\r\n\r\n',
  'GET /metrics HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n',
  'HEAD /snapshot HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n',
  'GET /openapi.json HTTP/1.1\r\nHost: 10.0.0.1\r\nRange: bytes=5-1\r\n\r\n',
  'GET /index.html HTTP/1.0\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: 10.0.0.1\r\nOrigin: http://x\r\nAccess-Control-Request-Method: GET\r\n\r\n',
  'POST /alerts HTTP/1.1\r\nHost: 10.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
].map((text) => Buffer.from(text, 'latin1'));

/** A request with bytes changed, cut, repeated or joined with another request. */
function mutatedRequest(): Buffer {
  let bytes: Buffer = Buffer.from(pick(REQUESTS));
  for (let times = Math.floor(random() * 4); times > 0 && bytes.length > 0; times -= 1) {
    const at = Math.floor(random() * bytes.length);
    const kind = random();
    if (kind < 0.4) bytes[at] = Math.floor(random() * 256);
    else if (kind < 0.55) bytes = bytes.subarray(0, at);
    else if (kind < 0.7)
      bytes = Buffer.concat([bytes.subarray(0, at), Buffer.alloc(Math.floor(random() * 3000), bytes[at]), bytes.subarray(at)]);
    else if (kind < 0.85) bytes = Buffer.concat([bytes.subarray(0, at), pick(REQUESTS).subarray(at % 60)]);
    else bytes = Buffer.concat([bytes, pick(REQUESTS), pick(REQUESTS)]);
  }
  return bytes;
}

async function requests(): Promise<void> {
  while (!isOver) {
    await new Promise<void>((resolve) => {
      const socket = connect(HTTP_PORT, address);
      socket.setTimeout(50, () => socket.destroy());
      socket.on('error', () => socket.destroy());
      socket.once('data', () => {
        sent.answers += 1;
        if (random() < 0.8) socket.destroy();
      });
      socket.once('close', () => resolve());
      socket.write(mutatedRequest());
      sent.requests += 1;
    });
    await new Promise((later) => setTimeout(later, ROUND_MS));
  }
}

const socket = createSocket('udp4');
await new Promise<void>((resolve) => socket.bind(0, resolve));
const group = createSocket({ type: 'udp4', reuseAddr: true });
const entities = (kinds: readonly number[]): number[] => KEYS.flatMap((key) => kinds.map((kind) => (key << 8) | kind));
/** Prefixes by the address from which they were announced. */
const announced = new Map<string, string>();
await new Promise<void>((resolve) => {
  group.on('message', (datagram, source) => {
    if (datagram.length >= PREFIX_END) announced.set(source.address, datagram.toString('hex', PREFIX_START, PREFIX_END));
    if (announced.has(address) && (ownAddress === null || announced.has(ownAddress))) resolve();
  });
  group.bind(ports.metaMulticast(0), () => group.addMembership(MULTICAST_GROUP));
});
const target: Target = { prefix: announced.get(address) ?? '', writers: entities(WRITER_KINDS), readers: entities(READER_KINDS) };
const speaker = announced.get(ownAddress ?? '');
group.close();

const TARGETS = [
  [ports.metaUnicast(0, 0), address],
  [ports.userUnicast(0, 0), address],
  [ports.metaMulticast(0), MULTICAST_GROUP],
] as const;
const rounds = Math.ceil((Number(seconds) * 1000) / ROUND_MS);
const connections = Promise.all(Array.from({ length: CONNECTIONS }, requests));
for (let round = 0; round < rounds; round += 1) {
  for (let i = 0; i < DATAGRAMS_PER_ROUND; i += 1) {
    const original = random() < 0.8 ? redirected(pick(corpus), target, random) : Buffer.from(pick(corpus));
    const datagram = random() < 0.2 ? original : mutated(original, pick(corpus), random);
    if (speaker !== undefined && datagram.length >= PREFIX_END && random() < 0.8) datagram.write(speaker, PREFIX_START, 'hex');
    const [port, to] = pick(TARGETS);
    socket.send(datagram, port, to, () => {});
    sent.datagrams += 1;
  }
  await new Promise((later) => setTimeout(later, ROUND_MS));
}
isOver = true;
await connections;
socket.close();
process.stdout.write(`${JSON.stringify(sent)}\n`);
