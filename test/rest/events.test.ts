import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { EventReader, type ReceivedEvent } from '../../testkit/events.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import {
  ask,
  Contract,
  later,
  measured,
  PretendedMachine,
  problemOf,
  RawConnection,
  type StatusDocument,
  startIn,
  startService,
  stillWell,
} from '../../testkit/rest.ts';
import type { RunningService } from '../../testkit/service.ts';

const FAST_ALERTS = { raise_after_seconds: 0, clear_after_seconds: 0 };

/** Waits until a reader has so many events. */
async function received(reader: EventReader, count: number, seconds = 20): Promise<ReceivedEvent[]> {
  const deadline = Date.now() + seconds * 1000;
  while (reader.received.length < count) {
    if (Date.now() > deadline) throw new Error(`${reader.received.length} of ${count} events`);
    await later(20);
  }
  return reader.received;
}

const contents = (events: readonly ReceivedEvent[]): string[] => events.map(({ event, data }) => `${event} ${data}`);

/** What came after an event, as another reader of the whole stream saw it. */
function after(events: readonly ReceivedEvent[], id: string): ReceivedEvent[] {
  const index = events.findIndex((event) => event.id === id);
  if (index < 0) throw new Error(`no event ${id}`);
  return events.slice(index + 1);
}

/** A service with a machine whose memory the test fills, and a reader that saw everything. */
async function witnessed(
  t: Test,
  publishFrequency: number,
): Promise<{ folder: string; machine: PretendedMachine; options: object; service: RunningService; witness: EventReader }> {
  const folder = temporaryFolder(t);
  const machine = new PretendedMachine(folder);
  const options = { config: { publish_frequency: publishFrequency, alerts: FAST_ALERTS }, arguments: machine.arguments };
  const service = await startIn(t, folder, options);
  const witness = await EventReader.open(service.url);
  return { folder: folder, machine, options, service, witness };
}

t.test('events have an id, a kind and one line of JSON that keeps to the document', async (t) => {
  const { machine, service } = await witnessed(t, 10);
  const contract = await Contract.of(service);
  const { headers } = await ask(service, 'HEAD', '/events');
  t.match(headers['content-type'], /^text\/event-stream/);
  t.equal(headers['cache-control'], 'no-store');

  const raw = await RawConnection.open(service);
  raw.send('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  machine.setMemoryPercent(99);
  await raw.until(/event: alert[\s\S]*event: alert[\s\S]*event: health/);
  machine.setMemoryPercent(10);
  await raw.until(/"resolved":true[\s\S]*event: health/);
  raw.socket.destroy();
  const [, ...chunks] = raw.received
    .split('\r\n\r\n')
    .slice(1)
    .join('\r\n\r\n')
    .split(/\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n/);
  const blocks = chunks.join('').split('\n\n').slice(0, -1);
  t.equal(blocks[0], 'retry: 2000', 'first, how soon to come again');
  t.ok(blocks.length > 5);
  const ids = new Set<string>();
  for (const block of blocks.slice(1)) {
    const [, id, kind, data] = /^id: (\S+)\nevent: (health|alert)\ndata: (\{.*\})$/.exec(block) ?? [];
    if (!t.ok(id && kind && data, `an event: ${block}`)) continue;
    ids.add(id as string);
    const schema = { $ref: `#/components/schemas/${kind === 'health' ? 'HealthStatus' : 'Alert'}` };
    t.same(contract.schemaViolations(schema, JSON.parse(data as string)), []);
  }
  t.equal(ids.size, blocks.length - 1, 'no id comes twice');
});

t.test('what is sent is what is served: /health, /health/history and /alerts say the same', async (t) => {
  const { machine, service, witness } = await witnessed(t, 20);
  machine.setMemoryPercent(90);
  await received(witness, 20);
  machine.setMemoryPercent(10);
  await service.until<{ data: Alert[] }>('/alerts', ({ data }) => data.some(({ resolved }) => resolved));
  await received(witness, 40);
  const statuses = witness.health();
  const [from, to] = [statuses[0]?.timestamp as string, statuses.at(-1)?.timestamp as string];
  const { data } = await service.json<{ data: HealthStatus[] }>(`/health/history?from=${from}&to=${to}`);
  t.same(
    data,
    statuses.filter(({ timestamp }) => timestamp < to),
  );
  const changes = await service.json<{ data: Alert[] }>('/alerts?changes=true');
  t.same(changes.data.toReversed(), witness.alerts());
  t.same(
    witness.alerts().map(({ severity, resolved }) => [severity, resolved]),
    [
      ['WARNING', false],
      ['WARNING', true],
    ],
  );
});

t.test('events= and node= choose', async (t) => {
  const { machine, service } = await witnessed(t, 20);
  const readers = {
    health: await EventReader.open(service.url, '/events?events=health'),
    alert: await EventReader.open(service.url, '/events?events=alert'),
    both: await EventReader.open(service.url, '/events?events=alert,health'),
    shutdown: await EventReader.open(service.url, '/events?events=shutdown'),
    node: await EventReader.open(service.url, '/events?node=health_monitor'),
  };
  machine.setMemoryPercent(90);
  await received(readers.alert, 1);
  machine.setMemoryPercent(10);
  await received(readers.alert, 2);
  const count = readers.both.received.length;
  await received(readers.both, count + 5);
  const kinds = (reader: EventReader): string[] => [...new Set(reader.received.map(({ event }) => event))].sort();
  t.same(kinds(readers.health), ['health']);
  t.same(kinds(readers.alert), ['alert']);
  t.same(kinds(readers.both), ['alert', 'health']);
  t.same(kinds(readers.node), ['alert', 'health']);
  t.same(kinds(readers.shutdown), []);
  t.equal(readers.alert.received.length, 2);
  t.equal((await ask(service, 'GET', '/events?node=nobody')).status, 404);
  t.equal((await ask(service, 'HEAD', '/events?events=health&node=health_monitor')).status, 200);
});

t.test('a client that comes back within moments gets what it missed, once, in order', async (t) => {
  const { machine, service, witness } = await witnessed(t, 50);
  const first = await EventReader.open(service.url);
  await received(first, 10);
  first.close();
  await later(50);
  const id = first.received.at(-1)?.id as string;
  machine.setMemoryPercent(97);
  await later(300);
  machine.setMemoryPercent(10);
  await later(300);
  const again = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
  const alertsOnly = await EventReader.open(service.url, '/events?events=alert', { 'Last-Event-ID': id });
  await received(again, 60);
  const wanted = after(witness.received, id);
  t.same(again.received.slice(0, 60), wanted.slice(0, 60), 'the very same events');
  t.ok(again.alerts().length > 0, 'alerts among them');
  t.same(alertsOnly.received, wanted.filter(({ event }) => event === 'alert').slice(0, alertsOnly.received.length));
  t.ok(alertsOnly.received.length > 0);
});

t.test('a client that was away for longer than memory reaches gets it from the store', async (t) => {
  const { machine, service, witness } = await witnessed(t, 1000);
  const first = await EventReader.open(service.url);
  await received(first, 100);
  first.close();
  await later(50);
  const id = first.received.at(-1)?.id as string;
  machine.setMemoryPercent(97);
  await received(witness, first.received.length + 4000);
  machine.setMemoryPercent(10);
  const again = await EventReader.open(service.url, '/events?events=health', { 'Last-Event-ID': id });
  await received(again, 5000);
  const wanted = after(witness.received, id).filter(({ event }) => event === 'health');
  t.same(contents(again.received).slice(0, 5000), contents(wanted).slice(0, 5000), 'five thousand, in order, none missing and none twice');

  const last = again.received[4500]?.id as string;
  const third = await EventReader.open(service.url, '/events?events=health', { 'Last-Event-ID': last });
  await received(third, 400);
  t.same(
    contents(third.received).slice(0, 400),
    contents(after(again.received, last)).slice(0, 400),
    'ids of stored events resume as well',
  );
  const { rest } = await service.json<StatusDocument>('/status');
  t.equal(rest.dropped_event_streams, 0, 'nobody who read was dropped');
});

t.test('a client resumes after kill -9 and a new start: everything that was published in between, once, in order', async (t) => {
  const { folder, machine, options, service, witness } = await witnessed(t, 50);
  const first = await EventReader.open(service.url);
  await received(first, 20);
  first.close();
  await later(50);
  const id = first.received.at(-1)?.id as string;
  for (const percent of [97, 10, 90]) {
    machine.setMemoryPercent(percent);
    await later(300);
  }
  await received(witness, witness.received.length + 1);
  t.equal(await service.end('SIGKILL'), 'SIGKILL');
  const published = after(witness.received, id);
  t.ok(published.filter(({ event }) => event === 'alert').length >= 3, 'alerts among them');

  const restarted = await startIn(t, folder, options);
  await measured(restarted);
  const again = await EventReader.open(restarted.url, '/events', { 'Last-Event-ID': id });
  await received(again, published.length + 30);
  for (const kind of ['health', 'alert']) {
    const of = (events: readonly ReceivedEvent[]): string[] => contents(events.filter(({ event }) => event === kind));
    t.same(of(again.received).slice(0, of(published).length), of(published), `every ${kind} event`);
  }
  const times = again.health().map(({ timestamp }) => timestamp);
  t.same(times, times.toSorted(), 'in order, and on into the new run');
  t.equal(new Set(contents(again.received)).size, again.received.length, 'none twice');
  const { data } = await restarted.json<{ data: HealthStatus[] }>(`/health/history?from=${times[0]}&to=${times.at(-1)}`);
  t.same(data, again.health().slice(0, data.length), 'as the history has it');

  const middle = again.received[10]?.id as string;
  const once = await EventReader.open(restarted.url, '/events', { 'Last-Event-ID': middle });
  await received(once, published.length);
  t.same(
    contents(once.received).slice(0, published.length),
    contents(after(again.received, middle)).slice(0, published.length),
    'and from there again',
  );
});

t.test('an unknown or garbled Last-Event-ID is a new stream', async (t) => {
  const { service } = await witnessed(t, 20);
  await later(300);
  const ids = ['', '0', 'abc', '1-2', '-1.1-1.1-1', `${'9'.repeat(16)}.1-1.1-1`, 'x'.repeat(1000), '../../etc/passwd', "';--"];
  for (const id of ids) {
    const startedAt = new Date().toISOString();
    const reader = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
    t.equal(reader.status, 200, JSON.stringify(id.slice(0, 30)));
    await received(reader, 3);
    t.ok((reader.health()[0]?.timestamp as string) >= new Date(Date.parse(startedAt) - 100).toISOString(), 'it begins now');
    reader.close();
  }
  // Well formed, but never given out: far ahead, or before everything.
  const ahead = await EventReader.open(service.url, '/events', { 'Last-Event-ID': '999999999999999.1-999999999999999.1-1' });
  await received(ahead, 3);
  const { data } = await service.json<{ data: HealthStatus[] }>('/health/history');
  const everything = await EventReader.open(service.url, '/events?events=health', { 'Last-Event-ID': '0.0-0.0-0' });
  await received(everything, data.length);
  t.same(everything.health().slice(0, data.length), data, 'from the beginning, everything');
  await stillWell(t, service);
});

t.test('more readers than rest.max_event_streams are told so, and when to come again', async (t) => {
  const service = await startService(t, { config: { rest: { max_event_streams: 3 } } });
  const contract = await Contract.of(service);
  const readers = await Promise.all([1, 2, 3].map(() => EventReader.open(service.url)));
  const refused = await ask(service, 'GET', '/events');
  t.equal(refused.status, 503);
  t.equal(problemOf(refused).code, 'too_many_event_streams');
  t.equal(refused.headers['retry-after'], '1');
  t.same(contract.violations('/events', refused), []);
  t.equal((await service.json<StatusDocument>('/status')).rest.event_streams, 3);
  await measured(service);
  t.equal((await service.get('/health')).status, 200, 'everything else is there');
  readers[0]?.close();
  await service.until<StatusDocument>('/status', ({ rest }) => rest.event_streams === 2);
  const next = await EventReader.open(service.url);
  t.equal(next.status, 200, 'a place that became free is given');
  for (const reader of [...readers, next]) reader.close();
});

t.test('streams end when the service does', async (t) => {
  const service = await startService(t, { config: { publish_frequency: 20 } });
  const connection = await RawConnection.open(service);
  connection.send('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  await connection.until(/event: health/);
  const resuming = await RawConnection.open(service);
  resuming.send('GET /events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 0.0-0.0-0\r\n\r\n');
  t.equal(await service.end(), 0);
  t.equal(await connection.isClosedWithin(5), true);
  t.match(connection.received, /0\r\n\r\n$/, 'with the end of its body');
  t.notMatch(service.log, /Error/);
});
