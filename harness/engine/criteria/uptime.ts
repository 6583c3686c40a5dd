import { formatDuration } from '../../../src/core/time/duration.ts';
import type { Evidence } from '../evidence.ts';
import { axisTime, counted, decimalDuration } from '../format.ts';
import { type Judgement, type Limit, marginOf, type Quantity, REQUIRED_SECONDS, type Table, type TestVerdict } from '../judgement.ts';

/** The specification allows fewer than 3 restarts. */
const RESTART_LIMIT = 3;
/** A service that was last seen longer than this before the end did not run until the end. */
const UNSEEN_LIMIT_SECONDS = 300;

/** Restarts that were seen, plus those known only from systemd's count. */
export function restartsOf({ runs }: Evidence): number {
  return runs.reduce((sum, { unseen }) => sum + unseen, Math.max(0, runs.length - 1));
}

/** Time in which the observer ran, including suspends, in whole milliseconds, which is the precision of the clocks. */
export function observedMilliseconds({ observed }: Evidence): number {
  return observed.reduce((sum, { from, to }) => sum + Math.round((to - from) * 1000), 0);
}

/**
 * Passes after 168 hours with fewer than three restarts. Every restart counts, whatever its cause, and the service must run until the end.
 */
export function judgeUptime(evidence: Evidence): Judgement {
  const restarts = restartsOf(evidence);
  const observedSeconds = observedMilliseconds(evidence) / 1000;
  const unseenSeconds = (evidence.observed.at(-1)?.to ?? 0) - (evidence.lastSeenAt ?? 0);
  const missing: string[] = [];
  if (evidence.plannedSeconds < REQUIRED_SECONDS) {
    missing.push(`the run was planned for ${formatDuration(evidence.plannedSeconds, 'h')}, the test takes 168 h`);
  } else if (observedSeconds < REQUIRED_SECONDS)
    missing.push(`${decimalDuration(REQUIRED_SECONDS - observedSeconds)} of 168 h remain to be observed`);
  else if (!evidence.ended) missing.push('the run has not reached its planned end');
  if (evidence.runs.length === 0) missing.push('no run of the service was observed');

  const decided = decide(restarts, unseenSeconds, observedSeconds, missing.length > 0);
  return {
    criterion: 'uptime',
    title: 'Uptime',
    requirement: 'runs continuously for 168 hours with fewer than 3 restarts',
    formula:
      'observed = Σ (to − from) over the observed spans, by CLOCK_BOOTTIME, suspends included, ≥ 168 h; restarts = observed runs of the service − 1 + restarts known only from the counter of systemd, < 3; ' +
      'last seen before the end = end of the last observed span − last status or reading of the service, ≤ 300 s',
    ...decided,
    margin: marginOf(decided.measured.value ?? 0, decided.limit),
    evidence: [
      { label: 'observed', value: observedSeconds / 3600, unit: 'h' },
      { label: 'planned', value: evidence.plannedSeconds / 3600, unit: 'h' },
      { label: 'restarts', value: restarts, unit: '' },
      { label: 'last seen before the end', value: unseenSeconds, unit: 's' },
      { label: 'suspended', value: sum(evidence.suspends.map(({ seconds }) => seconds)) / 3600, unit: 'h', informative: true },
      {
        label: 'monitoring gaps',
        value: sum(evidence.monitoringGaps.map(({ from, to }) => to - from)) / 3600,
        unit: 'h',
        informative: true,
      },
    ],
    tables: [restartTable(evidence), monitoringGapTable(evidence), clockTable(evidence)],
    missing,
  };
}

interface Decided {
  readonly verdict: TestVerdict;
  readonly measured: Quantity;
  readonly limit: Limit;
  readonly summary: string;
}

/**
 * `measured` is the deciding quantity: the restarts or the time since the service was last seen if either fails,
 * otherwise the time observed.
 */
function decide(restarts: number, unseenSeconds: number, observedSeconds: number, lacking: boolean): Decided {
  const observed = `${formatDuration(observedSeconds, 'h')} observed, ${counted(restarts, 'restart')}`;
  if (restarts >= RESTART_LIMIT) {
    return {
      verdict: 'FAIL',
      measured: { label: 'restarts', value: restarts, unit: '' },
      limit: { comparison: '<', value: RESTART_LIMIT, unit: '' },
      summary: `The service was restarted ${restarts} times; fewer than 3 are allowed (${observed}).`,
    };
  }
  if (unseenSeconds > UNSEEN_LIMIT_SECONDS) {
    return {
      verdict: 'FAIL',
      measured: { label: 'last seen before the end', value: unseenSeconds, unit: 's' },
      limit: { comparison: '<=', value: UNSEEN_LIMIT_SECONDS, unit: 's' },
      summary: `The service was not seen in the last ${decimalDuration(unseenSeconds)} (${observed}).`,
    };
  }
  return {
    verdict: lacking ? 'INCOMPLETE' : 'PASS',
    measured: { label: 'observed', value: observedSeconds / 3600, unit: 'h' },
    limit: { comparison: '>=', value: REQUIRED_SECONDS / 3600, unit: 'h' },
    summary: lacking
      ? `${formatDuration(observedSeconds, 'h')} of 168 h, ${counted(restarts, 'restart')} so far.`
      : `${observed} of fewer than 3.`,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function restartTable({ runs }: Evidence): Table {
  return {
    title: 'Restarts',
    columns: ['after', 'started', 'cause', 'detail', 'unseen before it', 'version'],
    rows: runs.slice(1).map((run) => [axisTime(run.from), run.started, run.cause, run.detail, run.unseen, run.version]),
  };
}

function monitoringGapTable({ monitoringGaps }: Evidence): Table {
  const why = { off: 'the machine was off', away: 'the observer was not running', stalled: 'the observer was not scheduled' };
  return {
    title: 'Monitoring gaps',
    columns: ['from', 'to', 'seconds', 'why'],
    rows: monitoringGaps.map(({ from, to, kind }) => [axisTime(from), axisTime(to), to - from, why[kind]]),
  };
}

function clockTable({ suspends, clockSteps }: Evidence): Table {
  const rows = [
    ...suspends.map(({ at, seconds }) => ({ at, what: 'suspended', seconds, wall: null })),
    // Stryker disable next-line EqualityOperator: a step of 0 s is none
    ...clockSteps.map(({ at, seconds, wall }) => ({ at, what: seconds > 0 ? 'clock set forward' : 'clock set back', seconds, wall })),
  ].sort((one, other) => one.at - other.at);
  return {
    title: 'Suspends and clock steps',
    columns: ['at', 'what', 'seconds', 'time after it'],
    rows: rows.map(({ at, what, seconds, wall }) => [axisTime(at), what, seconds, wall]),
  };
}
