import type { Machine } from '../../testkit/machine/machine-info.ts';
import { type Judgement, type Limit, marginOf, type Quantity, type TestVerdict } from '../engine/judgement.ts';
import { memoryVariance } from '../engine/memory-variance.ts';
import { theilSen } from '../engine/theil-sen.ts';
import type { Episodes, ObservedRun } from './observed-run.ts';
import type { SoakOptions } from './options.ts';
import type { EndpointResult } from './requests.ts';

/** The input of the checks: the run of the harness, and the counts of the loads and of the independent subscriber. */
export interface Findings extends Omit<ObservedRun, 'episodes'> {
  readonly facts: Omit<SoakOptions, 'folder'> & {
    readonly began: string;
    readonly machine: Machine;
    readonly kernel: string;
    readonly version: string;
    readonly transport_reason: string;
    readonly network: string;
    readonly max_megabytes: number;
  };
  /** How the service ended during the run; null if it did not. */
  readonly ended: string | null;
  readonly interrupted: boolean;
  /** Time stamp of the oldest stored sample before and after the run. */
  readonly oldest: readonly [string | null, string | null];
  /** Number of statuses that the independent subscriber received, or the reason that there is none. */
  readonly peer: number | string;
  readonly alerts: {
    readonly cycles: number;
    readonly late: readonly string[];
    /** Null if not received or not requested on this channel. */
    readonly channels: Readonly<Record<'topic' | 'events' | 'peer' | 'rest', Episodes | null>>;
    /** Episodes that started and were resolved while the harness observed. */
    readonly observedIds: readonly string[];
  };
  readonly requests: readonly EndpointResult[];
  readonly failures: readonly string[];
}

export type Check = Omit<Judgement, 'criterion'> & { readonly check: string };

const LOSS_LIMIT: Limit = { comparison: '<=', value: 1, unit: '%' };
const NONE: Limit = { comparison: '<=', value: 0, unit: '' };
/**
 * The memory rule of the seven-day test leaves out an hour and takes medians of 300 s. These values scale both to the length of the run.
 */
const WARM_UP = { share: 0.1, minSeconds: 90 };
const MEDIANS = { count: 60, minSeconds: 30, maxSeconds: 300 };
const MIN_MEDIANS = 3;

export function checksOf(findings: Findings): readonly Check[] {
  return [
    serviceCheck(findings),
    ...lossChecks(findings),
    memoryCheck(findings),
    openFilesCheck(findings),
    databaseCheck(findings),
    alertsCheck(findings),
    requestsCheck(findings),
  ].map((check) =>
    findings.interrupted && check.verdict === 'PASS' ? { ...check, verdict: 'INCOMPLETE', missing: ['the run was interrupted'] } : check,
  );
}

interface CheckParts extends Pick<Check, 'check' | 'title' | 'requirement' | 'formula' | 'limit' | 'summary'> {
  readonly measured: Quantity;
  readonly evidence?: readonly Quantity[];
  readonly rows?: readonly string[];
  /** Why the value is null. */
  readonly missing?: string;
}

/** Compares the measured value with the limit; a check without a value is INCOMPLETE. */
function checked({ evidence = [], limit, measured, missing, rows = [], ...rest }: CheckParts): Check {
  const { value } = measured;
  const margin = value === null ? null : marginOf(value, limit);
  const isMet = margin !== null && (limit.comparison.endsWith('=') ? margin >= 0 : margin > 0);
  const verdict: TestVerdict = value === null ? 'INCOMPLETE' : isMet ? 'PASS' : 'FAIL';
  const tables = rows.length === 0 ? [] : [{ title: 'Problems', columns: ['problem'], rows: rows.map((row) => [row]) }];
  return { ...rest, verdict, measured, limit, margin, evidence, tables, missing: value === null && missing !== undefined ? [missing] : [] };
}

function serviceCheck({ ended, evidence: { runs } }: Findings): Check {
  const restarts = Math.max(0, runs.length - 1) + (ended === null ? 0 : 1);
  return checked({
    check: 'service',
    title: 'Service',
    requirement: 'the service runs from beginning to end',
    formula: 'restarts and exits of the service = 0',
    measured: { label: 'restarts and exits', value: restarts, unit: '' },
    limit: NONE,
    summary: ended === null ? `${runs.length} run of the service.` : `The service ended: ${ended}.`,
  });
}

/** Samples taken, and received or stored on each channel, relative to the expected ones. */
function lossChecks(findings: Findings): readonly Check[] {
  const { evidence, facts, peer, samplesLost, stored } = findings;
  const { by, byEvents, expected, lost, received, reason } = evidence.reliability;
  // Without a topic, the harness counts only by the event stream.
  const events = by === 'events' ? { expected, received } : byEvents;
  const isOff = facts.transport === 'off';
  const loss = (check: string, title: string, got: number | null, of: number, missing = '', evidence: readonly Quantity[] = []): Check =>
    checked({
      check,
      title,
      requirement: 'at most 1 % of the samples lost',
      formula: '(expected − counted) ÷ expected × 100 ≤ 1 %; expected as in the criterion Reliability of the harness',
      measured: { label: 'lost', value: got === null || of === 0 ? null : (100 * Math.max(0, of - got)) / of, unit: '%' },
      limit: LOSS_LIMIT,
      summary: got === null ? `Not counted: ${missing}.` : `${count(got)} of ${count(of)}.`,
      evidence,
      missing,
    });
  const storedExpected = Math.floor(stored.seconds * facts.hertz);
  return [
    loss('sampling', 'Sampling', expected === 0 ? null : expected - lost.notSampled, expected, 'no status was expected'),
    ...(isOff ? [] : [loss('topic', 'Topic', reason === null ? received : null, expected, reason ?? '')]),
    loss('events', 'Event stream', events?.received ?? null, events?.expected ?? 0, 'no event stream'),
    loss('stored', 'Stored history', storedExpected === 0 ? null : stored.count, storedExpected, '/health/history did not respond', [
      { label: 'dropped by the store, as the service counts', value: samplesLost, unit: '', informative: true },
    ]),
    ...(typeof peer === 'number' ? [loss('peer', 'Independent subscriber', peer, expected)] : []),
  ];
}

function memoryRule({ facts: { hertz, samples } }: Findings): { readonly warmUpSeconds: number; readonly medianSeconds: number } {
  const seconds = samples / hertz;
  return {
    warmUpSeconds: Math.max(WARM_UP.minSeconds, WARM_UP.share * seconds),
    medianSeconds: Math.min(MEDIANS.maxSeconds, Math.max(MEDIANS.minSeconds, seconds / MEDIANS.count)),
  };
}

function memoryCheck(findings: Findings): Check {
  const { memory } = findings.evidence;
  const { medianSeconds, warmUpSeconds } = memoryRule(findings);
  const variance = memoryVariance({ at: memory.at, bytes: memory.bytes, starts: [0], warmUpSeconds, medianSeconds });
  const isKnown = variance !== null && variance.count >= MIN_MEDIANS;
  const medians = variance?.count ?? 0;
  return checked({
    check: 'memory',
    title: 'Memory',
    requirement: 'memory usage variance below 10 %',
    formula:
      `as the criterion Stability, (max − min) ÷ median × 100 < 10 % of medians of the resident memory, scaled to this run: ` +
      `medians of ${tenths(medianSeconds)} s instead of 300 s, from ${tenths(warmUpSeconds)} s after the start on instead of 3,600 s`,
    measured: { label: 'spread', value: isKnown ? variance.percent : null, unit: '%' },
    limit: { comparison: '<', value: 10, unit: '%' },
    summary: isKnown
      ? `${megabytes(variance.min)} to ${megabytes(variance.max)} MB around ${megabytes(variance.median)} MB.`
      : 'There are too few readings after the warm-up.',
    evidence: [
      { label: 'medians', value: medians, unit: '' },
      { label: 'slope', value: variance?.slope == null ? null : (variance.slope * 3600) / 1e6, unit: 'MB/h', informative: true },
    ],
    missing: `${medians} medians after the warm-up; at least ${MIN_MEDIANS} are needed`,
  });
}

/** Uses the slope, which detects steady growth; files that are opened and closed again do not affect it. */
function openFilesCheck(findings: Findings): Check {
  const { warmUpSeconds } = memoryRule(findings);
  const points = findings.readings.flatMap(({ at, openFiles }) =>
    at >= warmUpSeconds && openFiles !== null ? [{ at, value: openFiles }] : [],
  );
  const slope = theilSen([points])?.slope ?? null;
  const length = (points.at(-1)?.at ?? 0) - warmUpSeconds;
  return checked({
    check: 'open-files',
    title: 'Open files and sockets',
    requirement: 'the number of open files and sockets does not grow',
    formula: 'slope (Theil–Sen, one reading a minute after the warm-up) × length of the run after the warm-up < 1',
    measured: { label: 'growth', value: slope === null ? null : slope * length, unit: '' },
    limit: { comparison: '<', value: 1, unit: '' },
    summary: points.length === 0 ? 'Not measured.' : `${points[0]?.value} after the warm-up, ${points.at(-1)?.value} at the end.`,
    missing: 'there are too few readings after the warm-up',
  });
}

function databaseCheck({ facts, oldest: [before, after], readings }: Findings): Check {
  const isAtLimit = before !== null && after !== null && after > before;
  const max = Math.max(...readings.map(({ databaseBytes }) => databaseBytes)) / 1e6;
  return checked({
    check: 'database',
    title: 'Database',
    requirement: 'the database stays within storage.max_megabytes, while samples are removed for it',
    formula: 'largest size (one reading a minute) ≤ storage.max_megabytes; the oldest sample at the end is newer than that at the start',
    measured: { label: 'largest size', value: isAtLimit || max > facts.max_megabytes ? max : null, unit: 'MB' },
    limit: { comparison: '<=', value: facts.max_megabytes, unit: 'MB' },
    summary: isAtLimit ? `The oldest sample moved from ${before} to ${after}.` : `No sample was removed; the oldest is of ${after}.`,
    missing: 'the database never reached its size limit',
  });
}

const CHANNEL_NAMES = { topic: 'on the topic', events: 'on /events', peer: 'at the independent subscriber', rest: 'in /alerts' } as const;

/** Each cycle of the load produces one episode, which is resolved. Every channel must report the same changes of it in the same order. */
function alertsCheck({ alerts: { channels, cycles, late, observedIds } }: Findings): Check {
  const { rest, ...subscribed } = channels;
  const ids = Object.keys(rest ?? {}).filter((id) => id.includes('/temperature/'));
  const problems = [...late];
  if (rest !== null && ids.length !== cycles) problems.push(`${cycles} causes, but ${ids.length} episodes`);
  for (const id of ids) if (!rest?.[id]?.at(-1)?.endsWith('resolved')) problems.push(`${id} is not resolved`);
  for (const [channel, episodes] of Object.entries(subscribed) as [keyof typeof subscribed, Episodes | null][]) {
    for (const id of episodes === null ? [] : observedIds) {
      const [here, there] = [episodes?.[id]?.join(', ') ?? 'none', rest?.[id]?.join(', ') ?? 'none'];
      if (here !== there) problems.push(`${id} ${CHANNEL_NAMES[channel]}: ${here}; in /alerts: ${there}`);
    }
  }
  return checked({
    check: 'alerts',
    title: 'Alerts',
    requirement:
      'every alert is raised, becomes CRITICAL and is resolved, alike on the topic, /events, the independent subscriber and in /alerts',
    formula: 'alerts that were late, missing, unresolved or not alike = 0',
    measured: { label: 'problems', value: rest === null || ids.length === 0 ? null : problems.length, unit: '' },
    limit: NONE,
    summary: `${cycles} causes, ${ids.length} episodes, ${observedIds.length} compared on every channel.`,
    rows: problems,
    missing: rest === null ? '/alerts did not respond at the end' : 'no alert was raised',
  });
}

function requestsCheck({ failures, requests }: Findings): Check {
  const all = requests.reduce((sum, endpoint) => sum + endpoint.requests, 0);
  const failed = requests.reduce((sum, endpoint) => sum + endpoint.failed, 0);
  return checked({
    check: 'rest',
    title: 'REST',
    requirement: 'at most 1 % of the requests without a valid response within 5 s',
    formula: 'failed ÷ requests × 100 ≤ 1 %',
    measured: { label: 'failed', value: all === 0 ? null : (100 * failed) / all, unit: '%' },
    limit: LOSS_LIMIT,
    summary: `${count(all - failed)} of ${count(all)} requests had a valid response.`,
    rows: failures,
    missing: 'no request was made',
  });
}

export const count = (value: number): string => Math.round(value).toLocaleString('en-US');
const tenths = (value: number): string => (Math.round(value * 10) / 10).toLocaleString('en-US');
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
