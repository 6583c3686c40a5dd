import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { type HostTime, readHostTime, sharesOf } from './host-time.ts';

const folder = temporaryFolder(t);

function read(text: string): HostTime | null {
  const file = join(folder, 'stat');
  writeFileSync(file, text);
  return readHostTime(file);
}

t.test('the first line of /proc/stat', async (t) => {
  t.same(read('cpu  100 20 30 400 50 6 7 80 90 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n'), { total: 693, idle: 450, steal: 80 });
  t.equal(read('cpu  100 20 30 400\n'), null);
  t.equal(read(''), null);
  t.equal(readHostTime(join(folder, 'none')), null);
  t.ok((readHostTime()?.total ?? 0) > 0, 'of this machine');
});

t.test('shares of the time between two readings', async (t) => {
  const before = { total: 1000, idle: 500, steal: 10 };
  t.same(sharesOf(before, { total: 1200, idle: 650, steal: 30 }), { idlePercent: 75, stealPercent: 10 });
  t.same(sharesOf(before, { total: 1200, idle: 490, steal: 10 }), { idlePercent: 0, stealPercent: 0 }, 'iowait may go backwards');
  t.equal(sharesOf(before, before), null);
  t.equal(sharesOf(null, before), null);
});
