import t from 'tap';
import type { Scan } from '../observe/coverage.ts';
import { Looks } from './looks.ts';

function looking(answers: () => boolean = () => true): { looks: Looks; asked: (readonly [number, number])[] } {
  const asked: (readonly [number, number])[] = [];
  const source = async (from: number, to: number): Promise<Scan | null> => {
    asked.push([from, to]);
    return answers() ? { of: 'stored', from, to, count: 0, first: null, last: null, longest_seconds: 0, gaps: [] } : null;
  };
  return { looks: new Looks({ sources: { stored: source, collected: null }, from: { stored: 100, collected: 100 } }), asked };
}

t.test('looks follow each other', async (t) => {
  const { asked, looks } = looking();
  t.equal((await looks.until(200)).length, 1);
  t.equal((await looks.until(300)).length, 1);
  t.same(asked, [
    [100, 200],
    [200, 300],
  ]);
  t.equal((await looks.until(300)).length, 0, 'nothing has passed');
});

t.test('what cannot be looked at now is looked at later', async (t) => {
  let isThere = false;
  const { asked, looks } = looking(() => isThere);
  t.equal((await looks.until(200)).length, 0);
  isThere = true;
  await looks.until(300);
  t.same(asked.at(-1), [100, 300]);
});

t.test('one that fails is as one that cannot be looked at', async (t) => {
  const fails = async (): Promise<null> => {
    throw new Error('no');
  };
  const looks = new Looks({ sources: { stored: fails, collected: null }, from: { stored: 0, collected: 0 } });
  t.same(await looks.until(10), []);
});

t.test('a clock that was put back', async (t) => {
  const { asked, looks } = looking();
  const before = looks.putBack(500, 150);
  const after = looks.until(600);
  t.equal((await before).length, 1);
  await after;
  t.same(asked, [
    [100, 500],
    [150, 600],
  ]);
});

t.test('a run that begins later', async (t) => {
  const { asked, looks } = looking();
  looks.beginAt(180);
  await looks.until(200);
  t.same(asked, [[180, 200]]);
});
