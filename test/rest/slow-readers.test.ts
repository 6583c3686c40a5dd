import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { startInProcess, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { RawConnection, type StatusDocument } from '../../testkit/service/rest.ts';

/** Readers that read nothing from the first event on, and readers that request past events and read nothing of them. */
const SLEEPERS = 4;
const RESUMING = 2;
/** One status per second of virtual time; the reader has received a batch before the next one is sent. */
const BATCH = 200;
/** The kernel buffers some megabytes for each connection before anything waits in the service: events are a kilobyte each. */
const NODE = '機'.repeat(255);
const MAX_BATCHES = 100;

t.test('a client that never reads is dropped and counted; a client that reads gets everything', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t), new TestClocks(), { localNode: NODE });
  const from = isoUtc(service.clocks.wallMs);
  const measure = (): HealthStatus => service.measure();
  const reader = await service.events();
  await service.run(BATCH, measure);
  await reader.untilCount(BATCH);
  const asleep = async (headers: string): Promise<RawConnection> => {
    const connection = await RawConnection.open(service);
    connection.socket.pause();
    return connection.send(`GET /events HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`);
  };
  const sleepers = [
    ...(await Promise.all(Array.from({ length: SLEEPERS }, () => asleep('')))),
    ...(await Promise.all(Array.from({ length: RESUMING }, () => asleep('Last-Event-ID: 0.0_0.0_0\r\n')))),
  ];
  const status = (): Promise<StatusDocument['rest']> => service.json<StatusDocument>('/status').then(({ rest }) => rest);
  let batches = 1;
  for (; (await status()).dropped_event_streams < sleepers.length && batches < MAX_BATCHES; batches += 1) {
    await service.run(BATCH, measure);
    await reader.untilCount((batches + 1) * BATCH);
  }
  const { dropped_event_streams, event_streams } = await status();
  t.equal(dropped_event_streams, sleepers.length, `each that never read, after ${batches} batches`);
  t.equal(event_streams, 1, 'and no other');
  for (const { socket } of sleepers) socket.destroy();

  const times = reader.health().map(({ timestamp }) => timestamp);
  t.equal(times.length, batches * BATCH);
  t.same(times, times.toSorted(), 'in order');
  const path = `/health/aggregate?node=${encodeURIComponent(NODE)}&from=${from}&to=${isoUtc(service.clocks.wallMs)}`;
  t.match(await service.json(path), { samples_received: batches * BATCH }, 'as many as were stored');
  reader.close();
});
