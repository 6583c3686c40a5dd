import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { EventReader, type ReceivedEvent } from '../../testkit/service/events.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { measured, problemOf, RawConnection, type StatusDocument, sendRequest, startIn } from '../../testkit/service/rest.ts';

// One service, and one witness that received everything from its first sample on. nodes-events.test.ts tests resuming from the store.

/** This host has 8 streams beyond the maximum. */
const MAX_STREAMS = 4 + 8;

const folder = temporaryFolder(t);
const machine = new MachineTree(t, 'vm-no-sensors');
const options = {
  config: {
    publish_frequency: 20,
    rest: { max_event_streams: 4 },
    alerts: { raise_after_seconds: 0, clear_after_seconds: 0 },
  },
  arguments: machine.arguments,
};
let service = await startIn(t, folder, options);
const witness = await EventReader.open(service.url);
await witness.untilCount(1);
const contract = await Contract.of(service);

/** For the rest of the file. */
async function restart(): Promise<void> {
  service = await startIn(t, folder, options);
  await measured(service);
}

const contents = (events: readonly ReceivedEvent[]): string[] => events.map(({ event, data }) => `${event} ${data}`);

/** The events after an event, as another reader of the whole stream received them. */
function after(events: readonly ReceivedEvent[], id: string): ReceivedEvent[] {
  const index = events.findIndex((event) => event.id === id);
  if (index < 0) throw new Error(`no event ${id}`);
  return events.slice(index + 1);
}

/** Sets the memory usage, and resolves with the changes of alerts that the witness received because of it. */
async function changesAt(percent: number, last: Partial<Alert>): Promise<Alert[]> {
  const before = witness.alerts().length;
  machine.setMemoryPercent(percent);
  const isLast = (alert: Alert): boolean => Object.entries(last).every(([key, value]) => alert[key as keyof Alert] === value);
  const changes = (): Alert[] => witness.alerts().slice(before);
  await witness.untilAlert(() => changes().some(isLast));
  return changes();
}

const raise = async (): Promise<Alert[]> => [
  ...(await changesAt(90, { severity: 'WARNING', resolved: false })),
  ...(await changesAt(99, { severity: 'CRITICAL', resolved: false })),
];
const resolve = (): Promise<Alert[]> => changesAt(10, { resolved: true });

t.test('HTTP/1.0 gets the events without chunks', async (t) => {
  const connection = await RawConnection.open(service);
  t.teardown(() => connection.socket.destroy());
  const text = await connection.send('GET /events HTTP/1.0\r\n\r\n').until(/(?:\nid: .*\nevent: health\ndata: .*\n){3}/);
  t.notMatch(text, /Transfer-Encoding/i);
});

t.test('events have an id, a kind and one line of JSON that conforms to the document', async (t) => {
  const { headers } = await sendRequest(service, 'HEAD', '/events');
  t.match(headers['content-type'], /^text\/event-stream/);
  t.equal(headers['cache-control'], 'no-store');

  const raw = await RawConnection.open(service);
  raw.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await raw.until(/event: health/);
  await raise();
  await raw.until(/event: alert[\s\S]*event: alert[\s\S]*event: health/);
  await resolve();
  await raw.until(/"resolved":true[\s\S]*event: health/);
  raw.socket.destroy();
  const [, ...chunks] = raw.received
    .split('\r\n\r\n')
    .slice(1)
    .join('\r\n\r\n')
    .split(/\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n/);
  const blocks = chunks.join('').split('\n\n').slice(0, -1);
  t.match(blocks[0], /^retry: 2000\nid: \S+$/, 'first, how soon to reconnect, and the id to resume from');
  t.ok(blocks.length > 5);
  const ids = new Set<string>();
  for (const block of blocks.slice(1)) {
    if (block.startsWith(':')) continue; // A heartbeat.
    const [, id, kind, data] = /^id: (\S+)\nevent: (health|alert)\ndata: (\{.*\})$/.exec(block) ?? [];
    if (!t.ok(id && kind && data, `an event: ${block}`)) continue;
    t.notOk(ids.has(id as string), 'no id comes twice');
    ids.add(id as string);
    const schema = { $ref: `#/components/schemas/${kind === 'health' ? 'HealthStatus' : 'Alert'}` };
    t.same(contract.schemaViolations(schema, JSON.parse(data as string)), []);
  }
});

t.test('events have the same content as /health/history and /alerts', async (t) => {
  const changes = [...(await raise()), ...(await resolve())];
  t.same(
    changes.map(({ severity, resolved }) => [severity, resolved]),
    [
      ['WARNING', false],
      ['CRITICAL', false],
      ['CRITICAL', true],
    ],
  );
  const statuses = witness.health();
  const [from, to] = [statuses[0]?.timestamp as string, statuses.at(-1)?.timestamp as string];
  const { data } = await service.json<{ data: HealthStatus[] }>(`/health/history?from=${from}&to=${to}`);
  t.same(
    data,
    statuses.filter(({ timestamp }) => timestamp < to),
  );
  const stored = await service.json<{ data: Alert[] }>('/alerts?changes=true');
  t.same(stored.data.toReversed(), witness.alerts());
});

t.test('events= and node= select events', async (t) => {
  const readers = {
    health: await EventReader.open(service.url, '/events?events=health'),
    alert: await EventReader.open(service.url, '/events?events=alert'),
    both: await EventReader.open(service.url, '/events?events=alert,health'),
    shutdown: await EventReader.open(service.url, '/events?events=shutdown'),
    node: await EventReader.open(service.url, '/events?node=health_monitor'),
  };
  const changes = [...(await raise()), ...(await resolve())];
  // A sample after the last alert: whatever any of them gets for the alerts was sent before.
  const { length } = witness.received;
  await witness.untilCount(length + 2);
  const { timestamp } = witness.health().at(-1) as HealthStatus;
  for (const reader of [readers.health, readers.both, readers.node]) {
    while (!reader.health().some((status) => status.timestamp >= timestamp)) await reader.untilCount(reader.received.length + 1);
  }
  await readers.alert.untilCount(changes.length);
  const kinds = (reader: EventReader): string[] => [...new Set(reader.received.map(({ event }) => event))].sort();
  t.same(kinds(readers.health), ['health']);
  t.same(readers.alert.alerts(), changes);
  t.same(kinds(readers.alert), ['alert']);
  t.same(kinds(readers.both), ['alert', 'health']);
  t.same(kinds(readers.node), ['alert', 'health']);
  t.same(kinds(readers.shutdown), []);
  t.equal((await sendRequest(service, 'GET', '/events?node=nobody')).status, 404);
  t.equal((await sendRequest(service, 'HEAD', '/events?events=health&node=health_monitor')).status, 200);
  for (const reader of Object.values(readers)) reader.close();
});

t.test('a client that reconnects gets what it missed, once and in order', async (t) => {
  const first = await EventReader.open(service.url);
  await first.untilCount(5);
  first.close();
  const id = first.received.at(-1)?.id as string;
  await raise();
  await resolve();
  await witness.untilCount(witness.received.length + 5);
  const wanted = after(witness.received, id);
  const again = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
  const alertsOnly = await EventReader.open(service.url, '/events?events=alert', { 'Last-Event-ID': id });
  await again.untilCount(wanted.length);
  t.same(again.received.slice(0, wanted.length), wanted, 'the very same events');
  const wantedAlerts = wanted.filter(({ event }) => event === 'alert');
  t.equal(wantedAlerts.length, 3, 'alerts among them');
  await alertsOnly.untilCount(3);
  t.same(alertsOnly.received, wantedAlerts);
  for (const reader of [again, alertsOnly]) reader.close();
});

t.test('an unknown or garbled Last-Event-ID begins a new stream', async (t) => {
  const ids = ['', '0', 'abc', '1-2', '-1.1-1.1-1', `${'9'.repeat(16)}.1-1.1-1`, 'x'.repeat(1000), '../../etc/passwd', "';--"];
  // Well formed, but never issued: far ahead.
  ids.push('zzzzzzzzz.1_zzzzzzzzz.1_1');
  for (const id of ids) {
    const before = witness.received.length;
    const reader = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
    t.equal(reader.status, 200, JSON.stringify(id.slice(0, 30)));
    const [event] = await reader.untilCount(1);
    reader.close();
    await witness.untilCount(before + 1);
    while (!witness.received.some((other) => other.id === event?.id)) await witness.untilCount(witness.received.length + 1);
    t.ok(witness.received.findIndex((other) => other.id === event?.id) >= before, 'it begins with what is published now');
  }
  // Well formed, and before everything.
  const { data } = await service.json<{ data: HealthStatus[] }>('/health/history');
  const everything = await EventReader.open(service.url, '/events?events=health', { 'Last-Event-ID': '0.0_0.0_0' });
  await everything.untilCount(data.length);
  t.same(everything.health().slice(0, data.length), data, 'from the beginning, everything');
  everything.close();
});

t.test('more readers than rest.max_event_streams are refused, with the time to wait', async (t) => {
  await service.until<StatusDocument>('/status', ({ rest }) => rest.event_streams === 1);
  const readers = await Promise.all(Array.from({ length: MAX_STREAMS - 1 }, () => EventReader.open(service.url)));
  const refused = await sendRequest(service, 'GET', '/events');
  t.equal(refused.status, 503);
  t.equal(problemOf(refused).code, 'too_many_event_streams');
  t.equal(refused.headers['retry-after'], '1');
  t.same(contract.violations('/events', refused), []);
  t.equal((await service.json<StatusDocument>('/status')).rest.event_streams, MAX_STREAMS);
  t.equal((await service.get('/health')).status, 200, 'everything else is there');
  readers[0]?.close();
  await service.until<StatusDocument>('/status', ({ rest }) => rest.event_streams === MAX_STREAMS - 1);
  const next = await EventReader.open(service.url);
  t.equal(next.status, 200, 'a place that became free is given');
  for (const reader of [...readers, next]) reader.close();
});

t.test('a client resumes after SIGKILL and a restart: everything published in between, once and in order', async (t) => {
  const id = witness.received.at(-1)?.id as string;
  await raise();
  await resolve();
  await witness.untilCount(witness.received.length + 1);
  t.equal(await service.end('SIGKILL'), 'SIGKILL');
  const published = after(witness.received, id);

  await restart();
  const again = await EventReader.open(service.url, '/events', { 'Last-Event-ID': id });
  await again.untilCount(published.length + 10);
  for (const kind of ['health', 'alert']) {
    const of = (events: readonly ReceivedEvent[]): string[] => contents(events.filter(({ event }) => event === kind));
    t.same(of(again.received).slice(0, of(published).length), of(published), `every ${kind} event`);
  }
  t.equal(new Set(contents(again.received)).size, again.received.length, 'none twice');
  const statuses = again.health();
  const times = statuses.map(({ timestamp }) => timestamp);
  t.same(times, times.toSorted(), 'in order, and on into the new run');
  const { data } = await service.json<{ data: HealthStatus[] }>(`/health/history?from=${times[0]}&to=${times.at(-1)}`);
  t.same(data, statuses.slice(0, data.length), 'as the history has it');

  const middle = again.received[3]?.id as string;
  const wanted = contents(after(again.received, middle));
  const fromMiddle = await EventReader.open(service.url, '/events', { 'Last-Event-ID': middle });
  await fromMiddle.untilCount(wanted.length);
  t.same(contents(fromMiddle.received).slice(0, wanted.length), wanted, 'and from there again');
  for (const reader of [again, fromMiddle]) reader.close();
});

t.test('streams end when the service does', async (t) => {
  const connection = await RawConnection.open(service);
  connection.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await connection.until(/event: health/);
  const resuming = await RawConnection.open(service);
  resuming.send('GET /events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0.0_0.0_0\r\n\r\n');
  t.equal(await service.end(), 0);
  await connection.untilClosed();
  t.match(connection.received, /0\r\n\r\n$/, 'with the end of its body');
  t.notMatch(service.log, /Error/);
});
