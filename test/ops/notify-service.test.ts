import t from 'tap';
import type { Message, MessageAlert } from '../../ops/notify/message.ts';
import { accept, Receiver } from '../../testkit/ops/http-receiver.ts';
import { until } from '../../testkit/wait.ts';
import { type AlertList, METRICS, type Metric, Site } from './support/notify-site.ts';

t.test('alerts of a real service are notified once, including those of the time when either side was down', async (t) => {
  const hook = await Receiver.start();
  t.teardown(() => hook.stop());
  const site = await Site.start(t, hook, ['disk']);
  await site.service.until<AlertList>('/alerts?metric=disk_percent', ({ data }) => data.length === 1, 120);
  site.startNotifying();
  await site.untilNotified(1);
  t.same(site.notified, ['raised disk_percent'], 'what is open at the first start is notified');
  t.match(site.lines[0], { severity: 'CRITICAL', threshold: 0.01, unit: '%', node: 'health_monitor' });

  await site.set('memory', true);
  await site.untilNotified(2);
  await site.kill('SIGTERM');
  await site.set('disk', false);
  await site.set('memory', false);
  await site.set('memory', true);
  site.startNotifying();
  await site.untilNotified(4);
  t.same(site.notified.slice(2).sort(), ['changed memory_percent', 'resolved disk_percent'], 'what happened while notifications were down');

  await site.service.end('SIGKILL');
  await site.startService();
  await site.set('memory', false);
  await site.untilNotified(5);
  t.equal(site.notified[4], 'resolved memory_percent', 'the service was killed and came back');
  await site.kill('SIGTERM');
  const comparisons = await site.startNotifyingThroughProxy(t);
  await until('open alerts were compared', () => comparisons() > 0, { describe: () => site.log });
  await site.set('disk', true);
  await site.untilNotified(6);
  t.same(site.notified.slice(5), ['raised disk_percent'], 'nothing is notified twice');
  t.equal(hook.received.length, new Set(hook.messages<Message>().map(({ id }) => id)).size);
  await site.kill('SIGTERM');
  t.notMatch(site.log, /^error: /m, 'no error in the log');
});

t.test('notifications killed during deliveries lose nothing, and a repeated notification has the same id', async (t) => {
  const hook = await Receiver.start();
  t.teardown(() => hook.stop());
  const site = await Site.start(t, hook);
  site.startNotifying();
  await site.untilCursor();
  const seen = new Set<string>();
  let kills = 0;
  hook.behaviour = (response, request, count) => {
    const key = request.headers['idempotency-key'] as string;
    if (seen.has(key)) return accept(response, request, count);
    seen.add(key);
    kills += 1;
    void site.kill('SIGKILL').then(() => {
      response.destroy();
      site.startNotifying();
    });
  };
  for (const isOpen of [true, false]) {
    const before = seen.size;
    for (const metric of METRICS) await site.set(metric, isOpen);
    await until('another notification came', () => seen.size > before, { describe: () => site.log });
  }
  const mine = (metric: Metric): MessageAlert[] => site.lines.filter((line) => line.metric === `${metric}_percent`);
  const episodes = (metric: Metric): number => mine(metric).reduce((sum, line) => sum + line.episodes, 0);
  const isAllNotified = (): boolean =>
    METRICS.every((metric) => episodes(metric) >= 1 && ['resolved', 'passed'].includes(mine(metric).at(-1)?.state ?? ''));
  await until('everything was notified', isAllNotified, { describe: () => `${JSON.stringify(site.notified)}\n${site.log}` });
  t.ok(kills >= 2, `${kills} kills`);
  for (const metric of METRICS) t.equal(episodes(metric), 1, `every episode once: ${site.notified.join(', ')}`);
  const times = (key: string): number => hook.received.filter(({ headers }) => headers['idempotency-key'] === key).length;
  await until('each came again', () => [...seen].every((key) => times(key) > 1));
  for (const key of seen) {
    const bodies = new Set(hook.received.filter(({ headers }) => headers['idempotency-key'] === key).map(({ body }) => body));
    t.equal(bodies.size, 1, 'the same id, the same content');
  }
});
