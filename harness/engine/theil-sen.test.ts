import t from 'tap';
import { type Point, theilSen } from './theil-sen.ts';

function points(...values: readonly (readonly [number, number])[]): Point[] {
  return values.map(([at, value]) => ({ at, value }));
}

t.test('Theil–Sen: finds a line despite outliers', async (t) => {
  const line = Array.from({ length: 20 }, (_, at): Point => ({ at, value: 3 + 2 * at }));
  t.same(theilSen([line]), { slope: 2, intercept: 3 });
  const wild = line.map((point, index) => (index % 5 === 2 ? { ...point, value: 1e6 } : point));
  t.same(theilSen([wild]), { slope: 2, intercept: 3 });
  t.same(theilSen([points([0, 1], [1, 2], [2, 9])]), { slope: 4, intercept: 1 }, 'slopes 1, 4, 7');
});

t.test('Theil–Sen: pairs points only within their own series', async (t) => {
  const saw = [points([0, 0], [1, 1], [2, 2]), points([3, 0], [4, 1], [5, 2])];
  t.equal(theilSen(saw)?.slope, 1);
  t.ok((theilSen([saw.flat()])?.slope ?? 9) < 1);
});

t.test('Theil–Sen: finds no line without two points at different times', async (t) => {
  t.equal(theilSen([]), null);
  t.equal(theilSen([points([1, 1]), points([2, 2])]), null);
  t.equal(theilSen([points([1, 1], [1, 5])]), null);
  t.equal(theilSen([points([1, 1], [1, 5], [2, 3])])?.slope, 0, 'of 2 and −2');
});

t.test('Theil–Sen: thins many points evenly', async (t) => {
  const many = Array.from({ length: 900 }, (_, at): Point => ({ at, value: at % 3 === 0 ? at : -at }));
  t.same(theilSen([many]), { slope: 1, intercept: 0 }, 'every third one');
  const halves = [many.slice(0, 450), many.slice(450)];
  t.same(theilSen(halves), { slope: 1, intercept: 0 }, 'of all series together');
  const most = Array.from({ length: 300 }, (_, at): Point => ({ at, value: at % 2 === 0 ? 0 : 1e6 }));
  t.not(theilSen([most])?.intercept, 0, 'as many as are taken are not');
});
