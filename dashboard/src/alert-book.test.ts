import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../testkit/effort.ts';
import { bookOf, EMPTY_BOOK, nodeOfAlert, openAbout, openOnOtherNodes, withAlert, withAlerts } from './alert-book.ts';
import type { Alert, Severity } from './types.ts';

fc.configureGlobal({ seed: SEED });

const alert = (id: string, second: number, more: Partial<Alert> = {}): Alert => ({
  alert_id: `health_monitor/cpu_percent/${id}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 85,
  threshold: 80,
  timestamp: new Date(second * 1000).toISOString(),
  resolved: false,
  ...more,
});
const ids = (entries: readonly { alert: Alert }[]): string[] => entries.map((entry) => entry.alert.alert_id.split('/').at(-1) as string);

t.test('a node is no better than its open alerts', async (t) => {
  const open = (severity: Severity, node: string): Alert => alert(severity, 1, { alert_id: `${node}/cpu_percent/${severity}`, severity });
  const book = bookOf([open('WARNING', 'arm'), open('CRITICAL', 'arm'), open('ERROR', 'leg')], [], []);
  t.equal(withAlerts('OK', book, 'arm'), 'CRITICAL');
  t.equal(withAlerts('OK', book, 'leg'), 'ERROR');
  t.equal(withAlerts('WARNING', book, 'head'), 'WARNING');
  t.equal(withAlerts('UNKNOWN', book, 'arm'), 'UNKNOWN');
  t.equal(withAlerts('OK', null, 'arm'), 'OK');
});

t.test('the node of an alert may have slashes in its name', async (t) => {
  t.equal(nodeOfAlert('health_monitor/temperature/01J'), 'health_monitor');
  t.equal(nodeOfAlert('/fleet/mast/monitor/temperature/01J'), '/fleet/mast/monitor');
});

t.test('open alerts are listed with the newest first, by when they were raised', async (t) => {
  const book = [alert('a', 10), alert('b', 20), alert('a', 30, { severity: 'CRITICAL', value: 95, threshold: 90 })].reduce(
    withAlert,
    EMPTY_BOOK,
  );
  t.same(ids(book.open), ['b', 'a']);
  t.match(book.open[1], { alert: { severity: 'CRITICAL', value: 95 }, sinceMs: 10_000, node: 'health_monitor' });
});

t.test('a resolved alert moves to the resolved ones, of which the last few stay', async (t) => {
  let book = EMPTY_BOOK;
  for (let i = 0; i < 9; i += 1) {
    book = withAlert(book, alert(`a${i}`, i));
    book = withAlert(book, alert(`a${i}`, 100 + i, { resolved: true }));
  }
  t.same(book.open, []);
  t.same(ids(book.resolved), ['a8', 'a7', 'a6', 'a5', 'a4']);
});

t.test('an older change that comes late tells since when, and changes nothing else', async (t) => {
  const book = [alert('a', 30, { severity: 'CRITICAL' }), alert('a', 10)].reduce(withAlert, EMPTY_BOOK);
  t.match(book.open, [{ alert: { severity: 'CRITICAL' }, sinceMs: 10_000 }]);
});

t.test('what is resolved is not opened again by a late change', async (t) => {
  const book = [alert('a', 10, { resolved: true }), alert('a', 10)].reduce(withAlert, EMPTY_BOOK);
  t.same(book.open, []);
  t.same(ids(book.resolved), ['a']);
});

t.test('the lists of the API make a book; changes of alerts that are in neither are left out', async (t) => {
  const open = [alert('a', 50, { severity: 'CRITICAL' })];
  const resolved = [alert('b', 40, { resolved: true })];
  const changes = [alert('a', 50, { severity: 'CRITICAL' }), alert('a', 20), alert('b', 5), alert('z', 1)];
  const book = bookOf(open, resolved, changes);
  t.same(ids(book.open), ['a']);
  t.equal(book.open[0]?.sinceMs, 20_000);
  t.same(ids(book.resolved), ['b']);
});

t.test('alerts about a metric are those of that node', async (t) => {
  const other = alert('x', 10, { alert_id: 'robot/cpu_percent/x' });
  const book = [alert('a', 10), other].reduce(withAlert, EMPTY_BOOK);
  t.same(openAbout(book, 'health_monitor', 'cpu_percent'), [alert('a', 10)]);
  t.same(openAbout(book, 'health_monitor', 'temperature'), []);
  t.same(openAbout(null, 'health_monitor', 'cpu_percent'), []);
});

t.test('the order in which the changes of an alert arrive does not matter in the end', async (t) => {
  const story = [alert('a', 10), alert('a', 20, { severity: 'CRITICAL' }), alert('a', 30), alert('a', 40, { resolved: true })];
  const expected = story.reduce(withAlert, EMPTY_BOOK);
  fc.assert(
    fc.property(fc.shuffledSubarray(story, { minLength: story.length }), (shuffled) => {
      t.same(shuffled.reduce(withAlert, EMPTY_BOOK), expected);
    }),
  );
});

t.test('of what is open on other nodes the worst is told, and of several such the newest', async (t) => {
  const of = (node: string, id: string, second: number, more: Partial<Alert> = {}): Alert =>
    alert(id, second, { alert_id: `${node}/cpu_percent/${id}`, ...more });
  const here = alert('a', 90, { severity: 'CRITICAL' });
  const open = [here, of('arm', 'b', 10), of('leg', 'c', 20), of('mast', 'd', 5, { severity: 'ERROR' })];
  t.equal(openOnOtherNodes(bookOf([here], [], []), 'health_monitor'), null);
  t.equal(openOnOtherNodes(null, 'health_monitor'), null);
  t.same(openOnOtherNodes(bookOf(open, [], []), 'health_monitor'), { count: 3, severity: 'ERROR', node: 'mast' });
  t.same(openOnOtherNodes(bookOf(open.slice(0, 3), [], []), 'health_monitor'), { count: 2, severity: 'WARNING', node: 'leg' });
  t.same(openOnOtherNodes(bookOf(open, [], []), 'arm'), { count: 3, severity: 'CRITICAL', node: 'health_monitor' });
});
