import type { Evidence } from '../../harness/engine/evidence.ts';
import type { Criterion, Judgement } from '../../harness/engine/judgement.ts';
import type { Untold } from './evidence.ts';

/** How a criterion was judged, where that is not as in a run that was watched. */
const FORMULAS: Readonly<Partial<Record<Criterion, string>>> = {
  uptime:
    'watched = time between rows of one boot, by CLOCK_BOOTTIME, that are at most 150 s apart or show the same run of the service, and up to 150 s at both ends of the period, ≥ 168 h; ' +
    'restarts = other service_started in the rows, < 3; silence at the end = end − last row with an answer, ≤ 300 s',
  reliability:
    'received ÷ expected > 99 %; expected = Hz × CLOCK_MONOTONIC seconds between the rows; received = growth of the statuses that the service handed to the ROS 2 graph, where a row does not show them of the samples it took, from 0 in each run of it; ' +
    'what a run that ended may have sampled after its last row is unknown',
  alerts:
    'episodes of severity CRITICAL open at the end, by the changes in alerts/ and by what /status counted in the last rows, = 0; both must have the same number open',
};

/** How what is missing can be had, next time or now. */
const REMEDIES: Readonly<Record<Criterion, string>> = {
  uptime: 'keep ops.collect_metrics at every minute for 168 h, and report 7 days',
  reliability: 'keep ops.collect_metrics at every minute, or run: edge-health harness run',
  stability: 'keep ops.collect_metrics at every minute: service_memory_bytes of its rows',
  alerts: 'keep ops.collect_alerts at every 5 minutes, and see why it fails: edge-health ops list',
  performance: 'keep ops.collect_metrics at every minute: service_cpu_seconds of its rows',
  integrity: 'report while the service runs and has the samples of the whole period, and keep ops.collect_metrics at every minute',
};

/**
 * Judgements of what was collected: in words that fit, and nothing passes where its origin cannot tell all that the criterion asks for.
 * What failed has failed all the same.
 */
export function asCollected(judgements: readonly Judgement[], evidence: Evidence, untold: Untold): Judgement[] {
  return judgements.map((judgement) => {
    const { criterion, formula, missing, summary, verdict } = judgement;
    const texts = untold[criterion] ?? [];
    return {
      ...(criterion === 'alerts' ? inWordsOfFiles(judgement) : judgement),
      verdict: verdict === 'PASS' && texts.length > 0 ? 'INCOMPLETE' : verdict,
      formula: FORMULAS[criterion] ?? formula,
      summary: criterion === 'reliability' ? samples(evidence, texts.length > 0 ? 'samples taken' : 'statuses published') : summary,
      missing: [...missing.map((text) => `${text}; ${REMEDIES[criterion]}`), ...texts],
    };
  });
}

/** The ways by which open alerts were told. */
function inWordsOfFiles(judgement: Judgement): Judgement {
  const words = (text: string): string => text.replace('by the topic', 'by alerts/').replace('by /alerts', 'by /status');
  return {
    ...judgement,
    evidence: judgement.evidence.map((quantity) => ({ ...quantity, label: words(quantity.label) })),
    tables: judgement.tables.map((table) => ({ ...table, columns: table.columns.map(words) })),
  };
}

function samples({ reliability: { by, expected, received, unheard } }: Evidence, what: string): string {
  if (by === null) return `It is not known how many ${what.replace(' ', ' were ')}.`;
  const percent = (Math.floor((1e5 * received) / expected) / 1e3).toFixed(3);
  const unknown = unheard > 0 ? `, ${unheard} not known` : '';
  return `${received} of ${expected} ${what} (${percent} %), ${expected - received - unheard} not${unknown}, as the service counted them.`;
}
