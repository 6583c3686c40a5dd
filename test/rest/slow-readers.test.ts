import t from 'tap';
import { EventReader } from '../../testkit/events.ts';
import { later, RawConnection, residentMegabytes, type StatusDocument, startService, stillWell } from '../../testkit/rest.ts';

/** Sockets hold some megabytes by themselves before anything waits in the service. */
const HERTZ = 1000;

t.test('who never reads is dropped and counted; who reads gets everything, and memory stays bounded', async (t) => {
  const service = await startService(t, { config: { publish_frequency: HERTZ, rest: { max_event_streams: 64 } } });
  const reader = await EventReader.open(service.url);
  await service.until<StatusDocument>('/status', ({ publish }) => publish.samples > HERTZ);
  const before = residentMegabytes(service);
  const sleepers = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const connection = await RawConnection.open(service);
      connection.socket.pause();
      connection.send('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
      return connection;
    }),
  );
  // What the kernel takes for a reader that sleeps fills slowly at a quarter of a megabyte a second: ask for the past as well.
  const hasty = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const connection = await RawConnection.open(service);
      connection.socket.pause();
      connection.send('GET /events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 0.0-0.0-0\r\n\r\n');
      return connection;
    }),
  );
  const { rest } = await service.until<StatusDocument>('/status', (status) => status.rest.dropped_event_streams >= 60, 90);
  t.equal(rest.dropped_event_streams, 60, 'each that never read');
  t.equal(rest.event_streams, 1, 'and nobody else');
  const after = residentMegabytes(service);
  t.ok(after - before < 100, `memory grew by ${Math.round(after - before)} MB while 60 readers slept`);
  for (const { socket } of [...sleepers, ...hasty]) socket.destroy();

  await later(100);
  const times = reader.health().map(({ timestamp }) => timestamp);
  const [from, to] = [times[0] as string, times.at(-1) as string];
  const { samples_received } = await service.json<{ samples_received: number }>(`/health/aggregate?from=${from}&to=${to}`);
  t.equal(times.filter((time) => time < to).length, samples_received, `who reads got all of ${samples_received}`);
  t.same(times, times.toSorted(), 'in order');
  reader.close();
  await stillWell(t, service);
});
