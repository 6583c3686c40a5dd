import t from 'tap';
import { Recent } from './recent.ts';

t.test('the last keys are remembered, each once', async (t) => {
  const recent = new Recent(2);
  t.same(
    ['a', 'a', 'b', 'c'].map((key) => recent.add(key)),
    [true, false, true, true],
  );
  t.same(
    ['a', 'b', 'c'].map((key) => recent.has(key)),
    [false, true, true],
  );
});
