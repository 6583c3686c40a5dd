import { EventEmitter, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t from 'tap';
import { until } from '../../testkit/wait.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader } from '../core/ports.ts';
import { EventHub } from './events.ts';

const STATUS = { node_name: 'a' } as HealthStatus;
const LINE = JSON.stringify({ node_name: 'a', padding: 'x'.repeat(4000) });
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const HEARTBEAT_SECONDS = 0.1;

t.test(
  'a client that does not read is dropped while the kernel still takes all that is sent to it; one that reads slowly is not',
  async (t) => {
    const history = { position: () => null } as unknown as HistoryReader;
    const hub = new EventHub(history, 10, HEARTBEAT_SECONDS);
    const server = createServer((_request, response) => void hub.open(response, { kinds: ['health'], node: null }, null));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = (): Socket => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(REQUEST);
      return socket;
    };
    const [deaf, eager, slow] = [client().pause(), client(), client().pause()];
    let beats = 0;
    eager.on('data', (part) => {
      beats += part.toString('latin1').split(': still here').length - 1;
    });
    let slowBytes = 0;
    const sips = setInterval(() => {
      slowBytes += (slow.read(64 * 1024) as Buffer | null)?.length ?? (slow.read() as Buffer | null)?.length ?? 0;
    }, 5);
    t.teardown(() => {
      clearInterval(sips);
      hub.stop();
      server.close();
      for (const socket of [deaf, eager, slow]) socket.destroy();
    });
    await until('all three are connected', () => hub.count === 3);
    // A megabyte is far more than a receiver's kernel takes for one who sleeps, and less than ours takes for him.
    for (let sent = 0; sent < 256; sent += 1) {
      hub.publishHealth(STATUS, LINE);
      if (sent % 8 === 7) await new Promise((later) => setTimeout(later, 5));
    }
    await until('one is dropped', () => hub.dropped > 0);
    t.equal(hub.dropped, 1, 'the one who does not read');
    for (let round = 0; round < 5; round += 1) {
      hub.publishHealth(STATUS, LINE);
      const before = beats;
      await until('the next heartbeat', () => beats > before);
    }
    t.equal(hub.dropped, 1, 'and nobody else');
    t.equal(hub.count, 2);
    t.ok(slowBytes > 0);
  },
);

t.test('what waits for thousands who do not read is bounded in all', async (t) => {
  const hub = new EventHub({ position: () => null } as unknown as HistoryReader, 5000);
  t.teardown(() => hub.stop());
  const responses = Array.from({ length: 2000 }, () => {
    const response = Object.assign(new EventEmitter(), {
      writableLength: 0,
      socket: null,
      writeHead: () => undefined,
      end: () => undefined,
      write: (text: string) => {
        response.writableLength += text.length;
      },
      destroy: () => {
        response.writableLength = 0;
      },
    });
    void hub.open(response as unknown as ServerResponse, { kinds: ['health'], node: null }, null);
    return response;
  });
  let most = 0;
  while (hub.count > 0) {
    hub.publishHealth(STATUS, LINE);
    most = Math.max(
      most,
      responses.reduce((sum, { writableLength }) => sum + writableLength, 0),
    );
  }
  t.ok(most > 1e6 && most < 48 * 1024 * 1024, `at most ${(most / 1e6).toFixed(0)} MB wait`);
  t.equal(hub.dropped, 2000);
});
