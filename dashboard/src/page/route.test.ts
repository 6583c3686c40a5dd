import fc from 'fast-check';
import t from 'tap';
import { hrefOf, readRoute } from './route.ts';

t.test('an address names the view, the item and the query', async (t) => {
  t.same(readRoute(''), { view: '', item: null, query: {} });
  t.same(readRoute('#/'), { view: '', item: null, query: {} });
  t.same(readRoute('#/wall'), { view: 'wall', item: null, query: {} });
  t.same(readRoute('#/nodes/hall%2Farm%201?range=1h'), { view: 'nodes', item: 'hall/arm 1', query: { range: '1h' } });
  t.same(readRoute('#/nodes/hall/arm'), { view: 'nodes', item: 'hall/arm', query: {} }, 'typed by hand');
  t.same(readRoute('#/nodes/100%'), { view: 'nodes', item: '100%', query: {} });
  t.equal(hrefOf({ view: 'wall' }), '#/wall');
  t.equal(hrefOf({ view: 'nodes', item: 'hall/arm 1', query: { range: '1h' } }), '#/nodes/hall%2Farm%201?range=1h');
});

t.test('every item and query survives the address', async (t) => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(text, fc.dictionary(text, text), (item, query) => {
      t.strictSame(readRoute(hrefOf({ view: 'alerts', item, query })), { view: 'alerts', item, query: { ...query } });
    }),
    { numRuns: 100 },
  );
});
