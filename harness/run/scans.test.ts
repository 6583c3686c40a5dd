import t from 'tap';
import type { Scan } from '../observe/coverage.ts';
import { Scans } from './scans.ts';

function scanning(answers: () => boolean = () => true): { scans: Scans; requests: (readonly [number, number])[] } {
  const requests: (readonly [number, number])[] = [];
  const source = async (from: number, to: number): Promise<Scan | null> => {
    requests.push([from, to]);
    return answers() ? { of: 'stored', from, to, count: 0, first: null, last: null, longest_seconds: 0, gaps: [] } : null;
  };
  return { scans: new Scans({ scanners: { stored: source, collected: null }, from: { stored: 100, collected: 100 } }), requests };
}

t.test('scans are consecutive', async (t) => {
  const { requests, scans } = scanning();
  t.equal((await scans.scanUntil(200)).length, 1);
  t.equal((await scans.scanUntil(300)).length, 1);
  t.same(requests, [
    [100, 200],
    [200, 300],
  ]);
  t.equal((await scans.scanUntil(300)).length, 0, 'nothing has passed');
});

t.test('what cannot be scanned is left to the next scan', async (t) => {
  let isThere = false;
  const { requests, scans } = scanning(() => isThere);
  t.equal((await scans.scanUntil(200)).length, 0);
  isThere = true;
  await scans.scanUntil(300);
  t.same(requests.at(-1), [100, 300]);
});

t.test('a failed scan is left to the next one', async (t) => {
  const fails = async (): Promise<null> => {
    throw new Error('no');
  };
  const scans = new Scans({ scanners: { stored: fails, collected: null }, from: { stored: 0, collected: 0 } });
  t.same(await scans.scanUntil(10), []);
});

t.test('a clock that was set back', async (t) => {
  const { requests, scans } = scanning();
  const before = scans.clockSetBack(500, 150);
  const after = scans.scanUntil(600);
  t.equal((await before).length, 1);
  await after;
  t.same(requests, [
    [100, 500],
    [150, 600],
  ]);
});

t.test('a run that begins later', async (t) => {
  const { requests, scans } = scanning();
  scans.beginAt(180);
  await scans.scanUntil(200);
  t.same(requests, [[180, 200]]);
});
