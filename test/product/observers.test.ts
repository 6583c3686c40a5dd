import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { ALERT } from '../../src/ros/interfaces.generated.ts';
import { LoopbackParticipant } from '../../testkit/dds/loopback.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS } from '../../testkit/network/this-machine.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

t.test('of several appliances that miss a robot one publishes the alert on the graph, and all of them show it', async (t) => {
  const domain = await reserveDomain(t);
  const start = (node_name: string): Promise<RunningService> =>
    startIn(t, temporaryFolder(t), {
      config: {
        node_name,
        publish_frequency: 5,
        alerts: { raise_after_seconds: 3600, node_grace_seconds: 5 },
        ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' },
      },
      environment: NO_ROS,
    });
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
