import t from 'tap';
import { buildBook } from '../../model/alert-book.ts';
import { initialState } from '../../page/page-state.ts';
import type { Alert, StatusDocument } from '../../types.ts';
import { thresholdsOf } from './thresholds.ts';

const alert = (more: Partial<Alert>): Alert => ({
  alert_id: 'arm/temperature/1',
  severity: 'WARNING',
  metric: 'temperature',
  value: 84,
  threshold: 70,
  timestamp: '2026-03-04T05:06:07.000Z',
  resolved: false,
  ...more,
});
const thresholds = { temperature: { warning: 75, critical: 85 } } as unknown as NonNullable<StatusDocument['thresholds']>;
const state = (node: string, ...open: Alert[]) => ({
  ...initialState(),
  local: 'pi',
  node,
  status: { thresholds } as unknown as StatusDocument,
  book: buildBook(open, [], []),
});

t.test('the local node has its configured thresholds', async (t) => {
  t.same(thresholdsOf(state('pi'), 'temperature'), [
    { severity: 'WARNING', value: 75 },
    { severity: 'CRITICAL', value: 85 },
  ]);
  t.same(thresholdsOf(state('pi', alert({ alert_id: 'pi/temperature/1', threshold: 75 })), 'temperature').length, 2, 'none twice');
  t.same(thresholdsOf({ ...state('pi'), status: null }, 'temperature'), []);
  const off = { thresholds: { ...thresholds, temperature: null } } as unknown as StatusDocument;
  t.same(thresholdsOf({ ...state('pi'), status: off }, 'temperature'), [], 'a metric that is switched off');
});

t.test('a remote node has the thresholds of its open alerts, except the timeout of an ERROR', async (t) => {
  const error = alert({ alert_id: 'arm/temperature/2', severity: 'ERROR', threshold: 30 });
  t.same(thresholdsOf(state('arm', alert({}), error), 'temperature'), [{ severity: 'WARNING', value: 70 }]);
  t.same(thresholdsOf(state('arm', alert({})), 'cpu_percent'), []);
});
