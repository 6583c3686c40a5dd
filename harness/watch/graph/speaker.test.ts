import t from 'tap';
import { Speakers } from './speaker.ts';

const by = (publisher: string | null, sequenceNumber: number | null) => ({ topic: '/health_status', publisher, sequenceNumber });

t.test('numbers that were left out are missing, the last ten once more are not', async (t) => {
  const speakers = new Speakers();
  const missing = [5, 6, 9, 9, 3, 4, 9, 10, 12].map((number) => speakers.hear(by('a', number)).missing);
  t.same(missing, [0, 0, 2, 0, 0, 0, 0, 0, 1]);
});

t.test('a restart is a new publisher, and none of its numbers is missing', async (t) => {
  const speakers = new Speakers();
  speakers.hear(by('a', 100));
  t.same(speakers.hear(by('b', 7)), { missing: 0, interrupted: false });
  t.same(speakers.hear(by('b', 9)), { missing: 1, interrupted: false });
  t.same(speakers.hear(by('c', 1)), { missing: 0, interrupted: false });
});

t.test('two that speak by turns', async (t) => {
  const speakers = new Speakers();
  const told = [by('a', 1), by('b', 1), by('a', 2), by('a', 3), by('b', 2)].map((arrived) => speakers.hear(arrived).interrupted);
  t.same(told, [false, false, true, false, true]);
});

t.test('a transport that does not tell', async (t) => {
  const speakers = new Speakers();
  t.same(speakers.hear(by(null, null)), { missing: 0, interrupted: false });
});
