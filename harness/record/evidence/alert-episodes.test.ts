import t from 'tap';
import type { AlertEntry, OpenEntry } from '../entries.ts';
import { AlertEpisodes } from './alert-episodes.ts';

const clocks = { boot: 0, mono: 0, wall: 0 };

function change(id: string, severity: AlertEntry['severity'], minute: number, resolved = false): AlertEntry {
  const timestamp = `2026-03-04T00:${String(minute).padStart(2, '0')}:00.000Z`;
  return { type: 'alert', by: 'topic', alert_id: id, severity, metric: 'cpu_percent', timestamp, resolved, ...clocks };
}

function list(...open: readonly (readonly [string, AlertEntry['severity']])[]): OpenEntry {
  return { type: 'open', open: open.map(([alert_id, severity]) => ({ alert_id, severity, metric: 'disk_percent' })), ...clocks };
}

function openIn(episodes: AlertEpisodes): string[] {
  return episodes.open().map(({ alertId, severity }) => `${alertId} ${severity}`);
}

t.test('an episode is open from its first change until it is resolved', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  t.same([episodes.open(), episodes.countsByWorst()], [[], { WARNING: 0, ERROR: 0, CRITICAL: 0 }]);
  episodes.changed(change('a', 'WARNING', 1), 60);
  t.same(episodes.open(), [{ alertId: 'a', metric: 'cpu_percent', severity: 'WARNING', since: '2026-03-04T00:01:00.000Z' }]);
  episodes.changed(change('a', 'CRITICAL', 2), 120);
  episodes.changed(change('a', 'WARNING', 1), 121);
  t.same(openIn(episodes), ['a CRITICAL'], 'the first one, received again, is not a later one');
  episodes.changed(change('a', 'WARNING', 3), 180);
  t.same(openIn(episodes), ['a WARNING']);
  episodes.changed(change('b', 'ERROR', 3), 180);
  episodes.changed(change('a', 'WARNING', 4, true), 240);
  t.same(openIn(episodes), ['b ERROR']);
  t.same(episodes.countsByWorst(), { WARNING: 0, ERROR: 1, CRITICAL: 1 });
  t.same(episodes.series(), [
    { from: 60, to: 240, severity: 'CRITICAL', metric: 'cpu_percent', alertId: 'a' },
    { from: 180, to: null, severity: 'ERROR', metric: 'cpu_percent', alertId: 'b' },
  ]);
});

t.test('a repeated change has no effect', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  const changes = [change('a', 'WARNING', 1), change('a', 'CRITICAL', 2), change('a', 'WARNING', 3)];
  for (const known of changes) episodes.changed(known, 60);
  for (const known of changes) episodes.changed(known, 500);
  t.same(openIn(episodes), ['a WARNING'], 'to one that joins late, in the old order');
  episodes.changed(changes[1] as AlertEntry, 600);
  t.same(openIn(episodes), ['a WARNING']);
  episodes.changed(change('a', 'WARNING', 4, true), 700);
  for (const known of changes) episodes.changed(known, 800);
  episodes.changed(change('a', 'CRITICAL', 9), 900);
  t.same([openIn(episodes), episodes.countsByWorst()], [[], { WARNING: 0, ERROR: 0, CRITICAL: 1 }], 'none opens again that was resolved');
  t.equal(episodes.series()[0]?.to, 700);
  episodes.changed(change('c', 'ERROR', 4, true), 950);
  t.same([openIn(episodes), episodes.series()[1]?.to], [[], 950], 'one of which only the end was received');
});

t.test('a resolution counts whatever its stamp, since the clock may have been set back', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  episodes.changed(change('a', 'CRITICAL', 50), 60);
  episodes.changed(change('a', 'CRITICAL', 10, true), 120);
  t.same(openIn(episodes), []);
});

t.test('alerts that were open before the subscription are taken from the first list', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  episodes.listedOpen(list(['a', 'WARNING'], ['b', 'CRITICAL']), 1);
  t.same(openIn(episodes), ['a WARNING', 'b CRITICAL']);
  t.same(episodes.open()[0], { alertId: 'a', metric: 'disk_percent', severity: 'WARNING', since: null });
  episodes.listedOpen(list(['c', 'WARNING']), 60);
  t.same(openIn(episodes), ['a WARNING', 'b CRITICAL'], 'later ones change nothing');
  episodes.changed(change('b', 'CRITICAL', 2, true), 120);
  episodes.changed(change('a', 'CRITICAL', 3), 120);
  t.same(openIn(episodes), ['a CRITICAL']);
  t.same(episodes.countsByWorst(), { WARNING: 0, ERROR: 0, CRITICAL: 2 });
});

t.test('a list that is more than two minutes later than a start or a resume has no effect', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  episodes.listedOpen(list(['a', 'WARNING']), 120.001);
  t.same(openIn(episodes), []);
  episodes.startSession(1000);
  episodes.listedOpen(list(['a', 'WARNING']), 1120);
  t.same(openIn(episodes), ['a WARNING'], 'two minutes after it');
});

t.test('changes received before the list take precedence over it', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  episodes.changed(change('a', 'WARNING', 1), 1);
  episodes.changed(change('b', 'WARNING', 1), 1);
  episodes.changed(change('b', 'WARNING', 1, true), 2);
  episodes.listedOpen(list(['a', 'CRITICAL'], ['b', 'WARNING']), 3);
  t.same(openIn(episodes), ['a WARNING']);
});

t.test('after a monitoring gap the list shows which alerts were resolved, and the severity of the others', async (t) => {
  const episodes = new AlertEpisodes();
  episodes.startSession(0);
  for (const id of ['a', 'b', 'c', 'd', 'e']) episodes.changed(change(id, 'WARNING', 1), 60);
  episodes.changed(change('e', 'WARNING', 2, true), 70);
  episodes.startSession(1000);
  t.same(openIn(episodes).length, 4, 'until then nothing is known');
  episodes.changed(change('d', 'WARNING', 1), 1000.5);
  episodes.listedOpen(list(['a', 'CRITICAL'], ['b', 'WARNING'], ['n', 'ERROR']), 1001);
  t.same(openIn(episodes), ['a CRITICAL', 'b WARNING', 'd WARNING', 'n ERROR'], 'c is gone, a change of d was received');
  t.same(episodes.countsByWorst(), { WARNING: 4, ERROR: 1, CRITICAL: 1 });
  t.same(
    episodes.series().map(({ to }) => to),
    [null, null, 1001, null, 70, null],
  );
  episodes.changed(change('c', 'WARNING', 1), 1100);
  t.same(openIn(episodes).length, 4, 'and stays so');
  episodes.startSession(2000);
  episodes.listedOpen(list(['a', 'WARNING'], ['e', 'WARNING']), 2001);
  t.same([openIn(episodes), episodes.countsByWorst().CRITICAL], [['a WARNING'], 1]);
});
