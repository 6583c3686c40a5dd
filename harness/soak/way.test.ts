import t from 'tap';
import { isoUtc } from '../../src/core/time.ts';
import { Way } from './way.ts';

const alert = (id: string, severity: 'WARNING' | 'CRITICAL', second: number, resolved = false) => ({
  alert_id: id,
  severity,
  resolved,
  timestamp: isoUtc(second * 1000),
});

t.test('counts what is stamped within the window, and nothing before it is open', async (t) => {
  const window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  const way = new Way(window);
  way.onStatus(isoUtc(1000));
  t.same([way.count, way.heard], [0, 1]);
  Object.assign(window, { fromMs: 2000, toMs: 3000 });
  for (const ms of [1999, 2000, 2005, 2005, 2999, 3000, 3001]) way.onStatus(isoUtc(ms));
  t.same([way.count, way.sameStamp, way.heard], [4, 1, 8]);
});

t.test('an episode that began before the window is nobody’s', async (t) => {
  const window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  const way = new Way(window);
  way.onAlert(alert('early', 'WARNING', 1));
  Object.assign(window, { fromMs: 2000, toMs: 3000 });
  way.onAlert(alert('early', 'WARNING', 2, true));
  way.onAlert(alert('late', 'WARNING', 2));
  t.same(way.episodes, { late: ['WARNING'] });
});

t.test('changes of each episode in their order, each once', async (t) => {
  const way = new Way({ fromMs: 0, toMs: 1 });
  way.onAlert(alert('a', 'WARNING', 1));
  way.onAlert(alert('b', 'WARNING', 1));
  way.onAlert(alert('a', 'CRITICAL', 2));
  way.onAlert(alert('a', 'CRITICAL', 2));
  way.onAlert(alert('a', 'WARNING', 3));
  way.onAlert(alert('a', 'WARNING', 4, true));
  t.same(way.episodes, { a: ['WARNING', 'CRITICAL', 'WARNING', 'WARNING resolved'], b: ['WARNING'] });
  t.equal(way.last('a'), 'WARNING resolved');
  t.equal(way.last('c'), undefined);
});
