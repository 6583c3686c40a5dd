import t from 'tap';
import { perfectEvidence } from '../../../testkit/weeks/perfect.ts';
import type { ReliabilityEvidence } from '../evidence.ts';
import { judgeReliability } from './reliability.ts';

const lost = { notSampled: 1, notPublished: 2, notDelivered: 3, unknown: 4 };

function reliability(more: Partial<ReliabilityEvidence> = {}): ReturnType<typeof judgeReliability> {
  return judgeReliability(perfectEvidence({ reliability: { ...perfectEvidence().reliability, ...more } }));
}

t.test('passes above 99 % and fails at 99 %', async (t) => {
  const all = reliability();
  t.same([all.criterion, all.verdict, all.measured.value, all.margin], ['reliability', 'PASS', 100, 1]);
  t.match(all.summary, '604800 of 604800 statuses received on the topic /health_status (100 %), none lost.');
  t.equal(reliability({ expected: 604_800, received: 598_753 }).verdict, 'PASS');
  const exact = reliability({ expected: 604_800, received: 598_752 });
  t.same([exact.verdict, exact.margin, exact.missing], ['FAIL', 0, []]);
  t.equal(reliability({ expected: 100, received: 99 }).verdict, 'FAIL');
  t.equal(reliability({ expected: 1000, received: 991 }).verdict, 'PASS');
  t.equal(reliability({ expected: 1, received: 0 }).verdict, 'FAIL');
  const none = reliability({ received: 0 });
  t.same([none.verdict, none.measured.value, none.margin], ['FAIL', 0, -99]);
  t.match(none.summary, '604800 not');
});

t.test('is INCOMPLETE if statuses without a subscription could decide the verdict', async (t) => {
  t.equal(reliability({ expected: 1000, received: 991, unobserved: 9 }).verdict, 'PASS', 'even if they were lost');
  const open = reliability({ expected: 1000, received: 990, unobserved: 1 });
  t.same([open.verdict, open.missing], ['INCOMPLETE', ['no subscription for 1 of 1000 expected statuses']]);
  t.match(open.summary, 'the subscription was interrupted');
  const lossy = reliability({ expected: 1000, received: 980, unobserved: 10 });
  t.same([lossy.verdict, lossy.missing], ['FAIL', []], 'even if they were received');
});

t.test('is INCOMPLETE with the reason if nothing was counted', async (t) => {
  const nowhere = reliability({ by: null, reason: 'no subscription' });
  t.same([nowhere.verdict, nowhere.missing, nowhere.measured.value, nowhere.margin], ['INCOMPLETE', ['no subscription'], null, null]);
  t.same(
    nowhere.evidence.filter(({ value }) => value === null).map(({ label }) => label),
    ['expected', 'received', 'lost'],
  );
  t.match(nowhere.summary, 'not known');
  const empty = reliability({ expected: 0, received: 0 });
  t.match(empty.summary, 'not known');
  t.same([empty.verdict, empty.missing], ['INCOMPLETE', ['no status was expected while observed']]);
});

t.test('reports where and how statuses were counted', async (t) => {
  t.match(
    reliability({ by: 'events', reason: 'not on the graph' }).summary,
    'received on the event stream (100 %), none lost; not on the graph.',
  );
  t.match(reliability({ by: 'collected' }).summary, 'in the collected files');
  const judgement = reliability({ received: 604_790, lost, duplicates: 5, outOfOrder: 6, byEvents: { expected: 10, received: 9 } });
  t.same(
    judgement.tables[0]?.rows.map((row) => row.slice(0, 2)),
    [
      ['not sampled', 1],
      ['not published', 2],
      ['not delivered', 3],
      ['unknown', 4],
    ],
  );
  t.equal(judgement.tables[0]?.title, 'Where 10 statuses went');
  t.equal(reliability({ received: 604_799 }).tables[0]?.title, 'Where 1 status went');
  t.same(
    judgement.evidence.map(({ value }) => value),
    [1, 604_800, 604_790, 10, 0, 5, 6, 9, 10],
  );
  t.same(
    reliability({ byEvents: null })
      .evidence.slice(-2)
      .map(({ value }) => value),
    [null, null],
  );
  t.same(
    judgement.evidence.map(({ informative }) => informative === true),
    [false, false, false, false, false, true, true, true, true],
  );
});
