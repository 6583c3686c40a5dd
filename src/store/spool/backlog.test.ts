import t from 'tap';
import { Backlog } from './backlog.ts';

t.test('over the size limit the oldest samples are dropped, but not those of the newest segment', async (t) => {
  const backlog = new Backlog(100);
  backlog.push({ segment: 1, bytes: 80, samples: 8 });
  backlog.push({ segment: 2, bytes: 90, samples: 9 });
  backlog.push({ segment: 3, bytes: 120, samples: 12 });
  // Segment 2 has an alert of 10 bytes.
  t.same(
    backlog.dropOldestSamples((segment) => (segment === 2 ? 10 : 0)),
    [1, 2],
  );
  t.match(backlog, { samples: 12, lost: 17, last: 3, isEmpty: false });
  const removed: number[] = [];
  backlog.written(3, (segment) => removed.push(segment));
  t.same(removed, [2, 3], 'the first file was removed with its samples');
  t.ok(backlog.isEmpty);
});

t.test('the file of a segment without records is removed like any other', async (t) => {
  const backlog = new Backlog(100);
  backlog.push({ segment: 1, bytes: 0, samples: 0 });
  backlog.push({ segment: 2, bytes: 80, samples: 8 });
  backlog.push({ segment: 3, bytes: 80, samples: 8 });
  t.same(
    backlog.dropOldestSamples(() => 0),
    [2],
  );
  const removed: number[] = [];
  backlog.written(3, (segment) => removed.push(segment));
  t.same(removed, [1, 3]);
});
