import t from 'tap';
import { expectedTopics, Publishers, TopicSearch } from './topic-subscription.ts';

const ALL = { healthStatus: null, alerts: null };
const ROOT = { healthStatus: '/health_status', alerts: '/alerts' };

t.test('the topics are derived from the node name', async (t) => {
  t.same(expectedTopics('health_monitor'), ROOT);
  t.same(expectedTopics('site/robot1/guard'), { healthStatus: '/site/robot1/health_status', alerts: '/site/robot1/alerts' });
});

t.test('a node found on the expected topic changes nothing', async (t) => {
  const search = new TopicSearch('health_monitor');
  t.same(search.topics, ROOT);
  t.equal(search.foundOn('/health_status'), false);
  t.equal(search.tryOther(), false);
  t.same(search.topics, ROOT);
});

t.test('a node not found is searched for on all topics and on the expected ones alternately', async (t) => {
  const search = new TopicSearch('health_monitor');
  const turns = [1, 2, 3].map(() => [search.tryOther(), search.topics]);
  t.same(turns, [
    [true, ALL],
    [true, ROOT],
    [true, ALL],
  ]);
  t.equal(search.foundOn('/well/being'), true);
  t.same(search.topics, { healthStatus: '/well/being', alerts: null });
  t.equal(search.tryOther(), false);
});

t.test('a node found on the expected topic while subscribed to all topics ends the search', async (t) => {
  const search = new TopicSearch('health_monitor');
  search.tryOther();
  t.equal(search.foundOn('/health_status'), true);
  t.same(search.topics, ROOT);
});

const by = (publisher: string | null, sequenceNumber: number | null) => ({ topic: '/health_status', publisher, sequenceNumber });

t.test('skipped numbers are missing; the last ten received again are not', async (t) => {
  const publishers = new Publishers();
  const missing = [5, 6, 9, 9, 3, 4, 9, 10, 12].map((number) => publishers.receive(by('a', number)).missing);
  t.same(missing, [0, 0, 2, 0, 0, 0, 0, 0, 1]);
});

t.test('a restart is a new publisher, and none of its numbers is missing', async (t) => {
  const publishers = new Publishers();
  publishers.receive(by('a', 100));
  t.same(publishers.receive(by('b', 7)), { missing: 0, isAlternating: false });
  t.same(publishers.receive(by('b', 9)), { missing: 1, isAlternating: false });
  t.same(publishers.receive(by('c', 1)), { missing: 0, isAlternating: false });
});

t.test('two publishers of one node are detected', async (t) => {
  const publishers = new Publishers();
  const found = [by('a', 1), by('b', 1), by('a', 2), by('a', 3), by('b', 2)].map((arrived) => publishers.receive(arrived).isAlternating);
  t.same(found, [false, false, true, false, true]);
});

t.test('a transport without sequence numbers reports nothing missing', async (t) => {
  const publishers = new Publishers();
  t.same(publishers.receive(by(null, null)), { missing: 0, isAlternating: false });
});
