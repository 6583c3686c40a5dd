import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { ALERT, ALERT_ARRAY } from '../../src/ros/interfaces.generated.ts';
import { LoopbackParticipant } from '../../testkit/dds/loopback.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS } from '../../testkit/network/this-machine.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

t.jobs = 2;

/** Starts a service that raises an alert about a node after 5 s without data, on a graph of its own. */
function startNode(t: Test, domain: number, node_name: string, folder = temporaryFolder(t), more: object = {}): Promise<RunningService> {
  return startIn(t, folder, {
    config: {
      node_name,
      publish_frequency: 5,
      alerts: { raise_after_seconds: 3600, node_grace_seconds: 5 },
      ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' },
      ...more,
    },
    environment: NO_ROS,
  });
}

t.test('of several appliances that miss a robot one publishes the alert on the graph, and all of them show it', async (t) => {
  const domain = await reserveDomain(t);
  const start = (node_name: string): Promise<RunningService> => startNode(t, domain, node_name);
  const observers = [await start('b'), await start('c')];
  const robot = await start('a');
  const listener = new LoopbackParticipant(t, domain);
  const published = listener.read<Alert>('/alerts', ALERT);
  await listener.start();
  for (const one of observers)
    await one.until<StatusDocument>('/status', ({ nodes }) => nodes.filter(({ timestamp }) => timestamp !== null).length === 3);
  t.match((await observers[0]?.json<StatusDocument>('/status'))?.ros, { observing: true, observers: ['a', 'b', 'c'] });

  await robot.end('SIGKILL');
  for (const one of observers)
    await one.until<{ count: number }>('/alerts?node=a&metric=health_status&resolved=false', ({ count }) => count === 1);
  await until('the alert on the graph', () => published.samples.length > 0);
  const back = await start('a');
  for (const one of observers)
    await one.until<{ count: number }>('/alerts?node=a&metric=health_status&resolved=false', ({ count }) => count === 0);
  await until('its end on the graph', () => published.samples.some(({ message }) => message.resolved));
  t.same(
    published.samples.map(({ message: { alert_id, resolved } }) => [alert_id.split('/')[0], resolved]),
    [
      ['a', false],
      ['a', true],
    ],
    'raised once, resolved once',
  );
  await back.end();
});

/** An observer between the ERROR about a node and the return of the node, which is the first observer from then on. */
const INTERRUPTIONS: readonly {
  readonly name: string;
  /** A newcomer is forgotten when the observer is restarted, which resolves its alert. */
  readonly isNewcomer?: boolean;
  readonly run: (restart: () => Promise<void>, bringBack: () => Promise<void>) => Promise<void>;
}[] = [
  { name: 'killed and restarted before the node returns', run: (restart, bringBack) => restart().then(bringBack) },
  { name: 'killed, and restarted after the node has returned', run: (restart, bringBack) => bringBack().then(restart) },
  { name: 'killed, and forgets a newcomer by that', isNewcomer: true, run: (restart, bringBack) => restart().then(bringBack) },
];

for (const { isNewcomer = false, name, run } of INTERRUPTIONS) {
  t.test(`an observer that is ${name} resolves the alert for every subscriber`, async (t) => {
    const domain = await reserveDomain(t);
    const folder = temporaryFolder(t);
    const expected = isNewcomer ? {} : { ops: { check: { nodes: ['a'] } } };
    const start = (node_name: string, inFolder: string): Promise<RunningService> => startNode(t, domain, node_name, inFolder, expected);
    const subscriber = (): LoopbackParticipant => new LoopbackParticipant(t, domain);
    const lasting = subscriber();
    const published = lasting.read<Alert>('/alerts', ALERT);
    await lasting.start();
    let observer = await start('b', folder);
    const robotFolder = temporaryFolder(t);
    const robot = await start('a', robotFolder);
    await observer.until<StatusDocument>('/status', ({ nodes }) => nodes.filter(({ timestamp }) => timestamp !== null).length === 2);
    await robot.end('SIGKILL');
    const { message: raised } = await until('the alert on the graph', () => published.samples[0]);
    t.match(raised, { metric: 'health_status', resolved: false });
    await observer.end('SIGKILL');
    await run(
      async () => {
        observer = await start('b', folder);
      },
      async () => {
        await start('a', robotFolder);
      },
    );
    await observer.until<{ count: number }>('/alerts?node=a&resolved=false', ({ count }) => count === 0);
    await until('the resolution on the graph', () => published.samples.some(({ message }) => message.resolved));
    const changes = published.samples.map(({ message }) => `${message.alert_id} ${message.timestamp} ${message.resolved}`);
    t.equal(new Set(changes).size, 2, 'raised once, resolved once');
    t.equal(published.samples.at(-1)?.message.alert_id, raised.alert_id);

    const late = subscriber();
    const [changesThen, lists] = [late.read<Alert>('/alerts', ALERT), late.read<{ alerts: Alert[] }>('/open_alerts', ALERT_ARRAY)];
    await late.start();
    // A list follows a change within 0.2 s, so an earlier one may be received first.
    const last = (): Alert[][] => [...new Map(lists.samples.map(({ message, writer }) => [writer, message.alerts])).values()];
    await until('empty lists of both', () => last().length === 2 && last().every((alerts) => alerts.length === 0));
    await until('what is kept', () => changesThen.samples.some(({ message }) => message.resolved));
    t.equal(changesThen.samples.at(-1)?.message.resolved, true, 'the last change that a late subscriber receives');
  });
}

t.test('the alert of an observer that was killed is resolved by its successor, and stays resolved when it returns', async (t) => {
  const domain = await reserveDomain(t);
  const folders = { first: temporaryFolder(t), robot: temporaryFolder(t) };
  const expected = { ops: { check: { nodes: ['robot'] } } };
  const lasting = new LoopbackParticipant(t, domain);
  const published = lasting.read<Alert>('/alerts', ALERT);
  await lasting.start();
  const startFirst = (): Promise<RunningService> => startNode(t, domain, 'a', folders.first, expected);
  const observers = [await startFirst(), await startNode(t, domain, 'b', undefined, expected)] as const;
  const robot = await startNode(t, domain, 'robot', folders.robot);
  for (const one of observers)
    await one.until<StatusDocument>('/status', ({ nodes }) => nodes.filter(({ timestamp }) => timestamp !== null).length === 3);
  await robot.end('SIGKILL');
  const { message: raised } = await until('the alert on the graph', () => published.samples[0]);
  t.match(raised, { metric: 'health_status', resolved: false });
  await observers[0].end('SIGKILL');
  const ids = (): Set<string> => new Set(published.samples.map(({ message }) => message.alert_id));
  await until('the alert about the observer', () => ids().size === 2);
  await startNode(t, domain, 'robot', folders.robot);
  const changesOf = (id: string): Alert[] =>
    published.samples.filter(({ message }) => message.alert_id === id).map(({ message }) => message);
  await until('the resolution by the successor', () => changesOf(raised.alert_id).at(-1)?.resolved);

  await startFirst();
  await until('the resolution about the observer', () => [...ids()].every((id) => changesOf(id).at(-1)?.resolved));
  const late = new LoopbackParticipant(t, domain);
  const kept = late.read<Alert>('/alerts', ALERT);
  const lists = late.read<{ alerts: Alert[] }>('/open_alerts', ALERT_ARRAY);
  await late.start();
  const last = (): Alert[][] => [...new Map(lists.samples.map(({ message, writer }) => [writer, message.alerts])).values()];
  await until('empty lists of all', () => last().length === 3 && last().every((alerts) => alerts.length === 0));
  const byWriter = new Map(kept.samples.map(({ message, writer }) => [`${writer} ${message.alert_id}`, message]));
  t.ok(byWriter.size > 0);
  for (const [key, { resolved }] of byWriter) t.ok(resolved, `${key}: the last change that a late subscriber receives`);
  t.equal(ids().size, 2, 'one episode for each of the two');
  const resolutions = changesOf(raised.alert_id).map(({ resolved }) => resolved);
  t.same(resolutions, resolutions.toSorted(), 'what is resolved is not published as open again');
});
