import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import t, { type Test } from 'tap';
import type { Message } from '../../ops/notify/message.ts';
import { Receiver } from '../../testkit/ops/http-receiver.ts';
import { until } from '../../testkit/wait.ts';
import { type AlertList, Site } from './support/notify-site.ts';

/** Opens event streams until the service refuses one more; closes them when called. */
async function takeAllStreams(t: Test, url: string): Promise<() => void> {
  const taken: IncomingMessage[] = [];
  const free = (): void => {
    for (const response of taken) response.destroy();
  };
  t.teardown(free);
  for (;;) {
    const [response] = (await once(get(`${url}/events?events=shutdown`, { agent: false }), 'response')) as [IncomingMessage];
    if (response.statusCode !== 200) {
      t.equal(response.statusCode, 503);
      response.resume();
      return free;
    }
    response.on('error', () => undefined);
    taken.push(response);
  }
}

t.test('while all event streams are in use each alert is notified once, and over the stream afterwards', async (t) => {
  const hook = await Receiver.start();
  t.teardown(() => hook.stop());
  const site = await Site.start(t, hook, ['disk'], { max_event_streams: 1 });
  await site.service.until<AlertList>('/alerts?metric=disk_percent', ({ data }) => data.length === 1, 120);
  const free = await takeAllStreams(t, site.service.url);
  site.startNotifying();
  await site.untilNotified(1);
  t.match(site.lines[0], { severity: 'CRITICAL', metric: 'disk_percent', state: 'raised' }, 'what is open at the first start');
  await site.set('memory', true);
  await site.untilNotified(2);
  await site.set('disk', false);
  await site.untilNotified(3);
  await site.untilDelivered();
  await site.kill('SIGKILL');
  await site.set('disk', true);
  await site.set('memory', false);
  site.startNotifying();
  await site.untilNotified(5);
  t.match(site.log, /warning: notifications: event stream not available, polling alerts seconds=0.2 problem=.*503/);
  t.notMatch(site.log, /event stream available again/);
  free();
  await until('the stream is open', () => site.log.includes('event stream available again'), { describe: () => site.log });
  await site.set('disk', false);
  await site.untilNotified(6);
  t.same(site.notified.slice(0, 3), ['raised disk_percent', 'raised memory_percent', 'resolved disk_percent']);
  t.same(
    site.notified.slice(3, 5).sort(),
    ['raised disk_percent', 'resolved memory_percent'],
    'what happened while notifications were down',
  );
  t.same(site.notified.slice(5), ['resolved disk_percent'], 'nothing is notified twice');
  t.equal(hook.received.length, new Set(hook.messages<Message>().map(({ id }) => id)).size);
  await site.kill('SIGTERM');
});
