import type { Evidence, ReliabilityEvidence } from '../evidence.ts';
import { counted, rounded } from '../format.ts';
import { type Judgement, marginOf, type Table, type TestVerdict } from '../judgement.ts';

const LIMIT_PERCENT = 99;

/**
 * Passes if more than 99 % of the expected statuses were received. Statuses without a subscription count neither as received nor as lost.
 */
export function judgeReliability({ reliability }: Evidence): Judgement {
  const { by, expected, received, unobserved } = reliability;
  const known = by !== null && expected > 0;
  const percent = known ? (received / expected) * 100 : null;
  const limit = { comparison: '>', value: LIMIT_PERCENT, unit: '%' } as const;
  const verdict = known ? decide(reliability) : 'INCOMPLETE';
  const missing = !known
    ? [reliability.reason ?? 'no status was expected while observed']
    : verdict === 'INCOMPLETE'
      ? [`no subscription for ${unobserved} of ${expected} expected statuses`]
      : [];
  return {
    criterion: 'reliability',
    title: 'Reliability',
    verdict,
    requirement: 'health metrics published at more than 99 % of the expected rate',
    formula:
      'received ÷ expected > 99 %; expected = ⌊Hz × CLOCK_MONOTONIC seconds⌋ of each observed span (without suspends, monitoring gaps and stalls of the observer; with the downtime of the service); ' +
      'received = statuses of the node with a timestamp in it; equal timestamps within five minutes count once, unless the clock was set back in between; ' +
      'FAIL only if counting every status without a subscription as received would not reach the limit',
    measured: { label: 'received of expected', value: percent, unit: '%' },
    limit,
    margin: percent === null ? null : marginOf(percent, limit),
    summary: summarize(reliability, verdict),
    evidence: [
      { label: 'rate', value: reliability.hertz, unit: 'Hz' },
      { label: 'expected', value: known ? expected : null, unit: '' },
      { label: 'received', value: known ? received : null, unit: '' },
      { label: 'lost', value: known ? expected - received : null, unit: '' },
      { label: 'without a subscription', value: unobserved, unit: '' },
      { label: 'received twice', value: reliability.duplicates, unit: '', informative: true },
      { label: 'out of order', value: reliability.outOfOrder, unit: '', informative: true },
      { label: 'by the event stream', value: reliability.byEvents?.received ?? null, unit: '', informative: true },
      { label: 'expected by the event stream', value: reliability.byEvents?.expected ?? null, unit: '', informative: true },
    ],
    tables: [lossTable(reliability)],
    missing,
  };
}

/** Compares whole samples, so that rounding cannot affect the verdict. */
function decide({ expected, received, unobserved }: ReliabilityEvidence): TestVerdict {
  if (received * 100 > expected * LIMIT_PERCENT) return 'PASS';
  return (received + unobserved) * 100 > expected * LIMIT_PERCENT ? 'INCOMPLETE' : 'FAIL';
}

const ON_CHANNEL = { topic: 'on the topic /health_status', events: 'on the event stream', collected: 'in the collected files' };

function summarize({ by, reason, expected, received }: ReliabilityEvidence, verdict: TestVerdict): string {
  if (by === null || expected === 0) return 'The number of received statuses is not known.';
  const [lost, percent] = [expected - received, (received / expected) * 100];
  const counts = `${received} of ${expected} statuses received ${ON_CHANNEL[by]} (${rounded(percent, 4)} %), ${lost === 0 ? 'none lost' : `${lost} not`}`;
  return `${counts}${verdict === 'INCOMPLETE' ? ', but the subscription was interrupted' : ''}${reason === null ? '' : `; ${reason}`}.`;
}

function lossTable({ lost, expected, received }: ReliabilityEvidence): Table {
  return {
    title: `Where ${counted(expected - received, 'status', 'statuses')} went`,
    columns: ['where', 'statuses', 'source'],
    rows: [
      ['not sampled', lost.notSampled, 'the service was down, or its count of missed samples'],
      ['not published', lost.notPublished, 'samples − statuses handed to the graph, by the counters of the service'],
      ['not delivered', lost.notDelivered, 'handed to the graph − received'],
      ['unknown', lost.unknown, 'not shown by the counters'],
    ],
  };
}
