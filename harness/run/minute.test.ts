import t from 'tap';
import { OwnUse } from './minute.ts';

t.test('memory is released at once, before the first reading, and once an hour after a reading', async (t) => {
  const releases: number[] = [];
  let readings = 0;
  const use = new OwnUse(() => releases.push(readings));
  for (; readings < 130; readings += 1) {
    const { cpu_seconds, resident_bytes } = use.read();
    if (!(cpu_seconds > 0 && resident_bytes > 10_000_000)) t.fail(`${cpu_seconds} s, ${resident_bytes} bytes`);
  }
  t.same(releases, [0, 0, 59, 119]);
});
