import t from 'tap';
import { expectedTopics, TopicSearch } from './topics.ts';

const ALL = { healthStatus: null, alerts: null };
const ROOT = { healthStatus: '/health_status', alerts: '/alerts' };

t.test('by its name', async (t) => {
  t.same(expectedTopics('health_monitor'), ROOT);
  t.same(expectedTopics('site/robot1/guard'), { healthStatus: '/site/robot1/health_status', alerts: '/site/robot1/alerts' });
});

t.test('heard where it should be: nothing changes', async (t) => {
  const search = new TopicSearch('health_monitor', null);
  t.same([search.topics, search.isSettled], [ROOT, false]);
  t.equal(search.heardOn('/health_status'), false);
  t.equal(search.isSettled, true);
  t.equal(search.giveUp(), false);
  t.same(search.topics, ROOT);
});

t.test('not heard: everywhere and there by turns', async (t) => {
  const search = new TopicSearch('health_monitor', null);
  const turns = [1, 2, 3].map(() => [search.giveUp(), search.topics]);
  t.same(turns, [
    [true, ALL],
    [true, ROOT],
    [true, ALL],
  ]);
  t.equal(search.heardOn('/well/being'), true);
  t.same(search.topics, { healthStatus: '/well/being', alerts: null });
  t.equal(search.giveUp(), false);
});

t.test('it came while all were listened to, on the topic that it should', async (t) => {
  const search = new TopicSearch('health_monitor', null);
  search.giveUp();
  t.equal(search.heardOn('/health_status'), true);
  t.same(search.topics, ROOT);
});

t.test('topics that are given are not left', async (t) => {
  const search = new TopicSearch('health_monitor', { healthStatus: '/a', alerts: '/b' });
  t.equal(search.isSettled, true);
  t.equal(search.giveUp(), false);
  t.equal(search.heardOn('/health_status'), false);
});
