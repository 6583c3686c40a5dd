import { memoryVariance } from '../engine/memory-variance.ts';
import { theilSen } from '../engine/theil-sen.ts';
import { type Check, checked } from './check.ts';
import { alertsCheck } from './check-alerts.ts';
import { samplingCheck } from './check-sampling.ts';
import { count, LOSS_LIMIT } from './figures.ts';
import type { Counted, Findings } from './findings.ts';

const LEAST_MEDIANS = 3;
/** Readings of every second are a few thousand at most; growth shows in every tenth as well. */
const SLOPE_EVERY = 10;

/** What must hold, one after the other. */
export function checksOf(findings: Findings): readonly Check[] {
  return [
    serviceCheck(findings),
    samplingCheck(findings),
    ...findings.counted.filter(({ way, count }) => way !== 'peer' || count !== null).map((counted) => lossCheck(findings, counted)),
    memoryCheck(findings),
    handleCheck(findings, 'files', 'Open files', findings.readings.files),
    handleCheck(findings, 'sockets', 'Sockets', findings.readings.sockets),
    databaseCheck(findings),
    alertsCheck(findings),
    restCheck(findings),
  ].map((check) => (check.verdict === 'PASS' ? cutShort(findings, check) : check));
}

/** A run that did not last long enough has shown no failure yet, and nothing more. */
function cutShort({ cutShort: why }: Findings, check: Check): Check {
  return why === null ? check : { ...check, verdict: 'INCOMPLETE', missing: [...check.missing, why] };
}

function serviceCheck({ died, seconds }: Findings): Check {
  return checked({
    check: 'service',
    title: 'Service',
    requirement: 'the service runs from begin to end',
    formula: 'ends of its process that nobody asked for = 0',
    measured: { label: 'ends', value: died === null ? 0 : 1, unit: '' },
    limit: { comparison: '<=', value: 0, unit: '' },
    summary: died === null ? `One process for ${count(seconds)} s.` : `It ended after ${count(seconds)} s: ${died}.`,
  });
}

function lossCheck({ expected }: Findings, { count: found, instead, sameStamp, title, way }: Counted): Check {
  const lost = found === null ? null : (100 * (expected - found)) / expected;
  return checked({
    check: `loss-${way}`,
    title,
    requirement: 'no slot lost beyond 1 %',
    formula: '(slots of the window − statuses with a time stamp in it) ÷ slots × 100 ≤ 1 %',
    measured: { label: 'slots lost', value: lost, unit: '%' },
    limit: LOSS_LIMIT,
    summary: found === null ? `Not counted: ${instead}.` : `${count(found)} of ${count(expected)}.`,
    evidence:
      sameStamp === null ? [] : [{ label: 'in the same millisecond as the one before', value: sameStamp, unit: '', informative: true }],
    missing: [instead],
  });
}

function memoryCheck({ medianSeconds, readings, seconds, warmUpSeconds }: Findings): Check {
  const { at, residentBytes } = readings;
  const variance = memoryVariance({ at, bytes: residentBytes, starts: [0], warmUpSeconds, medianSeconds });
  const known = variance !== null && variance.count >= LEAST_MEDIANS;
  const slope = variance?.slope ?? null;
  return checked({
    check: 'memory',
    title: 'Memory',
    requirement: 'memory variance below 10 %',
    formula:
      `the rule of the seven-day test, (max − min) ÷ median × 100 < 10 % of medians of the resident memory (VmRSS), scaled to this run: ` +
      `medians of ${rounded(medianSeconds)} s instead of 300 s, from ${rounded(warmUpSeconds)} s after the start on instead of 3,600 s`,
    measured: { label: 'spread', value: known ? variance.percent : null, unit: '%' },
    limit: { comparison: '<', value: 10, unit: '%' },
    summary: known
      ? `${megabytes(variance.min)} to ${megabytes(variance.max)} MB around ${megabytes(variance.median)} MB.`
      : 'There are too few readings behind the warm-up.',
    evidence: [
      { label: 'medians', value: variance?.count ?? 0, unit: '' },
      {
        label: 'highest reading, warm-up included',
        value: Math.max(...residentBytes.slice(0, 1), ...peaks(residentBytes)) / 1e6,
        unit: 'MB',
        informative: true,
      },
      { label: 'slope', value: slope === null ? null : (slope * 3600) / 1e6, unit: 'MB/h', informative: true },
      { label: 'which over the run makes', value: slope === null ? null : (slope * seconds) / 1e6, unit: 'MB', informative: true },
    ],
    missing: [`${variance?.count ?? 0} medians behind the warm-up, at least ${LEAST_MEDIANS} are needed`],
  });
}

/** Theil–Sen over the run behind the warm-up: what comes and goes does not count, what only comes does. */
function handleCheck({ readings: { at }, warmUpSeconds }: Findings, check: string, title: string, values: readonly number[]): Check {
  const points = values.flatMap((value, i) =>
    (at[i] as number) >= warmUpSeconds && i % SLOPE_EVERY === 0 ? [{ at: at[i] as number, value }] : [],
  );
  const line = theilSen([points]);
  const length = (at.at(-1) ?? 0) - warmUpSeconds;
  const settled = points.map(({ value }) => value);
  return checked({
    check,
    title,
    requirement: 'no growing handle count',
    formula: `slope of the count (Theil–Sen, readings of every ${SLOPE_EVERY} s behind the warm-up) × length of that stretch < 1`,
    measured: { label: 'growth over the run', value: line === null ? null : line.slope * length, unit: '' },
    limit: { comparison: '<', value: 1, unit: '' },
    summary:
      settled.length === 0
        ? 'Not measured.'
        : `${settled[0]} behind the warm-up, ${settled.at(-1)} at the end, ${Math.max(...settled)} at the most.`,
    evidence: [],
    missing: ['there are too few readings behind the warm-up'],
  });
}

function databaseCheck({ database, readings }: Findings): Check {
  const { filled, maxBytes, oldest } = database;
  const most = readings.databaseBytes.length === 0 ? null : Math.max(...peaks(readings.databaseBytes)) / 1e6;
  const [before, after] = oldest;
  const worked = before != null && after != null && after > before;
  const judged = checked({
    check: 'database',
    title: 'Database',
    requirement: 'database within its cap, and the cap at work',
    formula:
      'largest size of edge-health.db at any second ≤ storage.max_megabytes; the oldest stored sample is a later one at the end than at the begin',
    measured: { label: 'largest size', value: most, unit: 'MB' },
    limit: { comparison: '<=', value: maxBytes / 1e6, unit: 'MB' },
    summary: worked
      ? `Full at the begin (${count(filled)} samples of days before); the oldest sample moved from ${before} to ${after}.`
      : `The cap did not have to work: the oldest sample is still of ${after ?? 'an unknown time'}.`,
    evidence: [
      {
        label: 'with its log and index beside it',
        value: Math.max(...peaks(readings.databaseFolderBytes)) / 1e6,
        unit: 'MB',
        informative: true,
      },
    ],
    missing: ['the database was not seen'],
  });
  if (worked || judged.verdict !== 'PASS') return judged;
  return { ...judged, verdict: 'INCOMPLETE', missing: ['the database never reached its cap'] };
}

function restCheck({ rest }: Findings): Check {
  const asked = rest.reduce((sum, path) => sum + path.asked, 0);
  const failed = rest.reduce((sum, path) => sum + path.failed, 0);
  return checked({
    check: 'rest',
    title: 'REST',
    requirement: 'every endpoint answers all the time; 1 % of the requests may be late by more than 5 s',
    formula: 'requests without a good answer ÷ requests × 100 ≤ 1 %',
    measured: { label: 'without a good answer', value: asked === 0 ? null : (100 * failed) / asked, unit: '%' },
    limit: LOSS_LIMIT,
    summary: `${count(asked - failed)} of ${count(asked)} requests were answered.`,
    missing: ['nothing was asked'],
  });
}

/** The largest of each thousand: spreading a long list as arguments would exceed the stack. */
function peaks(values: readonly number[]): number[] {
  const found: number[] = [];
  for (let i = 0; i < values.length; i += 1000) found.push(Math.max(...values.slice(i, i + 1000)));
  return found;
}

const rounded = (value: number): string => (Math.round(value * 10) / 10).toLocaleString('en-US');
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
