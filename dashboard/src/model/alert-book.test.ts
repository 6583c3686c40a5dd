import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../../testkit/effort.ts';
import type { Alert, Severity } from '../types.ts';
import {
  buildBook,
  EMPTY_BOOK,
  nodeOfAlert,
  openAlertsAbout,
  openOnOtherNodes,
  raisedMs,
  statusWithAlerts,
  withAlert,
} from './alert-book.ts';

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

t.test('the status of a node is at least as bad as its open alerts', async (t) => {
  const open = (severity: Severity, node: string): Alert => alert(severity, 1, { alert_id: `${node}/cpu_percent/${severity}`, severity });
  const book = buildBook([open('WARNING', 'arm'), open('CRITICAL', 'arm'), open('ERROR', 'leg')], [], []);
  t.equal(statusWithAlerts('OK', book, 'arm'), 'CRITICAL');
  t.equal(statusWithAlerts('OK', book, 'leg'), 'ERROR');
  t.equal(statusWithAlerts('WARNING', book, 'head'), 'WARNING');
  t.equal(statusWithAlerts('UNKNOWN', book, 'arm'), 'CRITICAL');
  t.equal(statusWithAlerts('UNKNOWN', book, 'leg'), 'UNKNOWN', 'its ERROR is about the missing data');
  t.equal(statusWithAlerts('OK', null, 'arm'), 'OK');
});

t.test('the node name in an alert id may contain slashes', async (t) => {
  t.equal(nodeOfAlert('health_monitor/temperature/01J'), 'health_monitor');
  t.equal(nodeOfAlert('/fleet/mast/monitor/temperature/01J'), '/fleet/mast/monitor');
});

t.test('open alerts are sorted by the time they were raised, newest first', async (t) => {
  const book = [alert('a', 10), alert('b', 20), alert('a', 30, { severity: 'CRITICAL', value: 95, threshold: 90 })].reduce(
    withAlert,
    EMPTY_BOOK,
  );
  t.same(ids(book.open), ['b', 'a']);
  t.match(book.open[1], { alert: { severity: 'CRITICAL', value: 95 }, sinceMs: 10_000, node: 'health_monitor' });
});

t.test('a resolved alert moves to the resolved list, which keeps the last five', async (t) => {
  let book = EMPTY_BOOK;
  for (let i = 0; i < 9; i += 1) {
    book = withAlert(book, alert(`a${i}`, i));
    book = withAlert(book, alert(`a${i}`, 100 + i, { resolved: true }));
  }
  t.same(book.open, []);
  t.same(ids(book.resolved), ['a8', 'a7', 'a6', 'a5', 'a4']);
});

t.test('a late older change sets the time of the raise and nothing else', async (t) => {
  const book = [alert('a', 30, { severity: 'CRITICAL' }), alert('a', 10)].reduce(withAlert, EMPTY_BOOK);
  t.match(book.open, [{ alert: { severity: 'CRITICAL' }, sinceMs: 10_000 }]);
});

t.test('a late change does not reopen a resolved alert', async (t) => {
  const book = [alert('a', 10, { resolved: true }), alert('a', 10)].reduce(withAlert, EMPTY_BOOK);
  t.same(book.open, []);
  t.same(ids(book.resolved), ['a']);
});

t.test('the book contains the listed alerts; changes of other alerts are ignored', async (t) => {
  const open = [alert('a', 50, { severity: 'CRITICAL' })];
  const resolved = [alert('b', 40, { resolved: true })];
  const changes = [alert('a', 50, { severity: 'CRITICAL' }), alert('a', 20), alert('b', 5), alert('z', 1)];
  const book = buildBook(open, resolved, changes);
  t.same(ids(book.open), ['a']);
  t.equal(book.open[0]?.sinceMs, 20_000);
  t.same(ids(book.resolved), ['b']);
});

t.test('openAlertsAbout returns only alerts of the given node and metric', async (t) => {
  const other = alert('x', 10, { alert_id: 'robot/cpu_percent/x' });
  const book = [alert('a', 10), other].reduce(withAlert, EMPTY_BOOK);
  t.same(openAlertsAbout(book, 'health_monitor', 'cpu_percent'), [alert('a', 10)]);
  t.same(openAlertsAbout(book, 'health_monitor', 'temperature'), []);
  t.same(openAlertsAbout(null, 'health_monitor', 'cpu_percent'), []);
});

t.test('the result does not depend on the order in which changes arrive', async (t) => {
  const changes = [alert('a', 10), alert('a', 20, { severity: 'CRITICAL' }), alert('a', 30), alert('a', 40, { resolved: true })];
  const expected = changes.reduce(withAlert, EMPTY_BOOK);
  fc.assert(
    fc.property(fc.shuffledSubarray(changes, { minLength: changes.length }), (shuffled) => {
      t.same(shuffled.reduce(withAlert, EMPTY_BOOK), expected);
    }),
  );
});

t.test('an alert was raised when its earliest change was made, which the book may not contain', async (t) => {
  const [entry] = buildBook([alert('a', 90)], [], []).open;
  t.ok(entry);
  if (!entry) return;
  t.equal(raisedMs(entry, [alert('b', 3)]), 90_000);
  t.equal(raisedMs(entry, [alert('a', 10), alert('a', 90), alert('b', 3)]), 10_000);
});

t.test('the hint names the worst alert of other nodes, and the newest of several equally severe ones', async (t) => {
  const of = (node: string, id: string, second: number, more: Partial<Alert> = {}): Alert =>
    alert(id, second, { alert_id: `${node}/cpu_percent/${id}`, ...more });
  const here = alert('a', 90, { severity: 'CRITICAL' });
  const open = [here, of('arm', 'b', 10), of('leg', 'c', 20), of('mast', 'd', 5, { severity: 'ERROR' })];
  t.equal(openOnOtherNodes(buildBook([here], [], []), 'health_monitor'), null);
  t.equal(openOnOtherNodes(null, 'health_monitor'), null);
  t.same(openOnOtherNodes(buildBook(open, [], []), 'health_monitor'), { count: 3, severity: 'ERROR', node: 'mast' });
  t.same(openOnOtherNodes(buildBook(open.slice(0, 3), [], []), 'health_monitor'), { count: 2, severity: 'WARNING', node: 'leg' });
  t.same(openOnOtherNodes(buildBook(open, [], []), 'arm'), { count: 3, severity: 'CRITICAL', node: 'health_monitor' });
});
