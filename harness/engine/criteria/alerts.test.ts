import t from 'tap';
import { episode, perfectEvidence } from '../../../testkit/weeks/perfect.ts';
import type { AlertEvidence } from '../evidence.ts';
import { judgeAlerts } from './alerts.ts';

const critical = episode('n/cpu/1', 'CRITICAL');
const warning = episode('n/disk/2', 'WARNING');

function alerts(more: Partial<AlertEvidence> = {}): ReturnType<typeof judgeAlerts> {
  return judgeAlerts(perfectEvidence({ alerts: { ...perfectEvidence().alerts, ...more } }));
}

t.test('passes when no alert is open, however many episodes there were', async (t) => {
  const judgement = alerts({ episodes: { WARNING: 3, ERROR: 2, CRITICAL: 1 } });
  t.same([judgement.criterion, judgement.verdict, judgement.measured.value, judgement.margin], ['alerts', 'PASS', 0, 0]);
  t.equal(judgement.summary, 'No CRITICAL alert is open at the end (1 episode reached it).');
  t.equal(alerts().summary, 'No CRITICAL alert is open at the end (none were raised).');
  t.same(
    judgement.evidence.map(({ value }) => value),
    [0, 0, 1, 2, 3],
  );
  t.same(
    judgement.evidence.map(({ informative }) => informative === true),
    [false, false, true, true, true],
  );
});

t.test('fails when either source lists an open CRITICAL alert', async (t) => {
  const both = alerts({ openByRest: [critical], openByTopic: [critical] });
  t.same([both.verdict, both.measured.value, both.margin, both.missing], ['FAIL', 1, -1, []]);
  t.match(both.summary, '1 CRITICAL alert open at the end');
  t.equal(alerts({ openByRest: [critical] }).verdict, 'FAIL');
  t.equal(alerts({ openByTopic: [critical] }).verdict, 'FAIL');
  t.equal(alerts({ openByRest: null, openByTopic: [critical] }).verdict, 'FAIL');
  t.equal(alerts({ openByRest: [critical], openByTopic: null }).verdict, 'FAIL');
  t.equal(alerts({ openByRest: [episode('a', 'CRITICAL')], openByTopic: [episode('b', 'CRITICAL')] }).measured.value, 2);
});

t.test('passes with open WARNING and ERROR alerts if both sources agree', async (t) => {
  const open = [warning, episode('n/temperature/3', 'ERROR')];
  t.same([alerts({ openByRest: open, openByTopic: [...open].reverse() }).verdict], ['PASS']);
  const differing = alerts({ openByRest: open, openByTopic: [warning] });
  t.same([differing.verdict, differing.missing], ['INCOMPLETE', ['/alerts and the topic differ in open alerts: n/temperature/3']]);
  t.equal(alerts({ openByRest: [warning], openByTopic: open }).verdict, 'INCOMPLETE');
  const crossed = alerts({ openByRest: [episode('b', 'ERROR'), episode('a', 'ERROR')], openByTopic: [episode('c', 'ERROR')] });
  t.match(crossed.missing, [/: a, b, c$/]);
  t.match(differing.summary, 'as far as known');
});

t.test('is INCOMPLETE without one of the sources, and has no measured value without both', async (t) => {
  const silent = alerts({ openByTopic: null, reason: 'no subscription' });
  t.same([silent.verdict, silent.missing, silent.measured.value], ['INCOMPLETE', ['no subscription'], 0]);
  t.match(silent.summary, 'no subscription');
  t.same(alerts({ openByTopic: null }).missing, ['the alerts of the topic']);
  const unasked = alerts({ openByRest: null });
  t.same(
    [unasked.verdict, unasked.missing, unasked.measured.value],
    ['INCOMPLETE', ['the open alerts that /alerts returns at the end'], 0],
  );
  const neither = alerts({ openByRest: null, openByTopic: null });
  t.same([neither.verdict, neither.missing.length, neither.measured.value, neither.margin], ['INCOMPLETE', 2, null, null]);
  t.equal(alerts({ openByRest: null, openByTopic: [warning] }).missing.length, 1, 'what is not known does not differ');
});

t.test('lists open alerts as each source reports them', async (t) => {
  const { evidence, tables } = alerts({
    openByRest: [episode('b', 'WARNING', { since: null }), episode('a', 'ERROR', { since: null, metric: 'disk_percent' })],
    openByTopic: [
      episode('d', 'WARNING', { since: null }),
      episode('b', 'ERROR', { since: 'then' }),
      episode('c', 'WARNING', { metric: 'temperature' }),
    ],
  });
  t.same(
    evidence.slice(0, 2).map(({ value }) => value),
    [2, 3],
  );
  t.same(tables[0]?.rows, [
    ['a', 'disk_percent', 'ERROR', null, null],
    ['b', 'cpu_percent', 'WARNING', 'ERROR', 'then'],
    ['c', 'temperature', null, 'WARNING', '2026-03-04T05:06:07.000Z'],
    ['d', 'cpu_percent', null, 'WARNING', null],
  ]);
  t.same(alerts({ openByRest: null, openByTopic: null }).tables[0]?.rows, []);
});
