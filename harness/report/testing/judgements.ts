import type { Criterion, Judgement } from '../../engine/judgement.ts';

/** Judgements written by hand, so that tests of the report do not depend on the wording of the engine. */
const PASSED: Readonly<Record<Criterion, Omit<Judgement, 'criterion'>>> = {
  uptime: {
    title: 'Uptime',
    verdict: 'PASS',
    requirement: '168 hours with fewer than 3 restarts',
    formula:
      'observed = Σ (end − begin) of the observed stretches by the boot-time clock; restarts = runs of the service − 1 + runs not seen',
    measured: { label: 'Observed', value: 168, unit: 'h' },
    limit: { comparison: '>=', value: 168, unit: 'h' },
    margin: 0,
    summary: 'The service was observed for 168 h and was never restarted.',
    evidence: [
      { label: 'Observed', value: 604_800, unit: 's' },
      { label: 'Restarts', value: 0, unit: '' },
    ],
    tables: [{ title: 'Restarts', columns: ['At', 'Cause', 'Detail'], rows: [] }],
    missing: [],
  },
  reliability: {
    title: 'Reliability',
    verdict: 'PASS',
    requirement: 'over 99 % of the expected publish rate',
    formula: 'received / expected; expected = hertz × Σ awake seconds of the observed stretches',
    measured: { label: 'Received of expected', value: 99.998, unit: '%' },
    limit: { comparison: '>', value: 99, unit: '%' },
    margin: 0.998,
    summary: '604,788 of 604,800 statuses were received.',
    evidence: [
      { label: 'Expected', value: 604_800, unit: '' },
      { label: 'Received', value: 604_788, unit: '' },
      { label: 'Not delivered', value: 12, unit: '' },
      { label: 'Received by /events', value: 604_800, unit: '', informative: true },
    ],
    tables: [{ title: 'Losses', columns: ['Where', 'Statuses'], rows: [['not delivered', 12]] }],
    missing: [],
  },
  stability: {
    title: 'Stability',
    verdict: 'PASS',
    requirement: 'memory variance below 10 %',
    formula: '(max − min) / median of the five-minute medians of resident memory, from one hour after each start on',
    measured: { label: 'Memory variance', value: 2.3456, unit: '%' },
    limit: { comparison: '<', value: 10, unit: '%' },
    margin: 7.6544,
    summary: 'Memory stayed between 61.2 and 62.6 MB.',
    evidence: [
      { label: 'Medians', value: 2004, unit: '' },
      { label: 'Slope (Theil–Sen)', value: 0.0123, unit: 'MB/day' },
      { label: 'In 90 days', value: 1.107, unit: 'MB', informative: true },
    ],
    tables: [],
    missing: [],
  },
  alerts: {
    title: 'Alerts',
    verdict: 'PASS',
    requirement: 'no unresolved CRITICAL alert',
    formula: 'episodes of severity CRITICAL open at the end, by /alerts and by the topic, which must agree',
    measured: { label: 'Open CRITICAL alerts', value: 0, unit: '' },
    limit: { comparison: '<', value: 1, unit: '' },
    margin: 1,
    summary: 'No CRITICAL alert is open.',
    evidence: [{ label: 'Episodes of CRITICAL in the run', value: 1, unit: '' }],
    tables: [],
    missing: [],
  },
  performance: {
    title: 'Performance',
    verdict: 'PASS',
    requirement: 'average CPU below 10 %',
    formula: 'CPU time of the service / time awake, of one core',
    measured: { label: 'CPU of one core', value: 0.3127, unit: '%' },
    limit: { comparison: '<', value: 10, unit: '%' },
    margin: 9.6873,
    summary: 'The service used 1,891 s of CPU in 168 h.',
    evidence: [{ label: 'CPU time of the service', value: 1891.2, unit: 's' }],
    tables: [],
    missing: [],
  },
  integrity: {
    title: 'Data integrity',
    verdict: 'PASS',
    requirement: 'no gap above 5 min',
    formula: 'longest time between neighbouring stamps, less recorded suspends and clock steps',
    measured: { label: 'Longest gap', value: 61.5, unit: 's' },
    limit: { comparison: '<=', value: 300, unit: 's' },
    margin: 238.5,
    summary: 'The longest gap was 61.5 s.',
    evidence: [
      { label: 'Stored samples', value: 604_799, unit: '' },
      { label: 'Collected rows', value: 10_079, unit: '' },
    ],
    tables: [{ title: 'Gaps', columns: ['In', 'From', 'To', 'Seconds', 'Excused'], rows: [] }],
    missing: [],
  },
};

/** The six criteria, passed unless overridden. */
export function sixJudgements(others: Partial<Record<Criterion, Partial<Judgement>>> = {}): Judgement[] {
  return (Object.keys(PASSED) as Criterion[]).map((criterion) => ({ criterion, ...PASSED[criterion], ...others[criterion] }));
}
