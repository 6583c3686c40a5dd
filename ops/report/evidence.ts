import type { AlertEvidence, Evidence, OpenEpisode } from '../../harness/engine/evidence.ts';
import type { Criterion } from '../../harness/engine/judgement.ts';
import type { Series } from '../../harness/engine/series.ts';
import { Axis } from '../../harness/record/evidence/axis.ts';
import { EvidenceBuilder } from '../../harness/record/evidence.ts';
import { SEVERITIES, type Severity } from '../../src/core/alert.ts';
import { isoUtc, MINUTE_MS } from '../../src/core/time.ts';
import type { AlertRecord } from '../collect/alert-files.ts';
import type { AlertChanges } from './alert-changes.ts';
import { asRecord, type Collected } from './as-record.ts';
import { countSamples } from './counters.ts';
import type { StoredLook } from './looks.ts';
import { later, type PlacedRow } from './timeline.ts';

/** Alerts are collected less often than rows: so long before the last row both must have agreed at some time. */
const AGREE_WITHIN_MS = 10 * MINUTE_MS;

const RESTARTS_UNTOLD =
  'whether there were more restarts in the minute before each that was seen; journalctl --unit=edge-health lists every start';
const PUBLISHED_REMEDY =
  'the service was not on the ROS 2 graph, or its version was older; set ros.transport to auto and collect for 168 h, or run: edge-health harness run';

/** What the origin of the evidence cannot tell about a criterion, for people. */
export type Untold = Readonly<Partial<Record<Criterion, readonly string[]>>>;

export interface CollectedEvidence {
  readonly evidence: Evidence;
  readonly series: Series;
  readonly untold: Untold;
}

export interface AlertsFound {
  readonly alerts: AlertChanges;
  /** collect_alerts has run: that there is no change means that there was none. */
  readonly collected: boolean;
  /** The rows tell of other nodes as well: what /status counts as open may be of these. */
  readonly isAlone: boolean;
}

/** What operations collected, as evidence for the same criteria as that of a run that was watched. */
export function evidenceOf(collected: Collected, found: AlertsFound, { look, problem }: StoredLook): CollectedEvidence {
  const builder = new EvidenceBuilder();
  const axis = new Axis();
  const places: number[] = [];
  for (const entry of asRecord(collected)) {
    builder.add(entry);
    if (entry.type === 'begin') axis.begin(entry);
    else if (entry.type === 'resume') axis.resume(entry);
    else {
      const at = axis.place(entry, false);
      if (entry.type === 'minute') places.push(at);
    }
  }
  const { rows } = collected;
  const last = rows.at(-1) as PlacedRow;
  const end = later(last.clocks, Math.max(0, (collected.period.toMs - last.ms) / 1000));
  if (look) builder.add({ type: 'holding', ...end, ...look });
  const { ratePercent, reliability, rowsWithoutPublished } = countSamples(rows, collected.configuredHertz);
  const rates = new Map(ratePercent.map((rate, i) => [places[i], rate]));
  const made = builder.evidence();
  const series = builder.series();
  const { evidence: alerts, untold } = alertEvidence(made.alerts, rows, found);
  const lastAnswer = places[rows.findLastIndex(({ answered }) => answered)] ?? null;
  return {
    evidence: {
      ...made,
      origin: 'collected',
      ended: true,
      lastHeardAt: lastAnswer,
      reliability,
      alerts,
      integrity: { ...made.integrity, instead: problem },
    },
    series: { ...series, ratePercent: series.at.map((at) => rates.get(at) ?? null) },
    untold: {
      uptime: made.runs.length > 1 ? [RESTARTS_UNTOLD] : [],
      reliability:
        rowsWithoutPublished > 0 ? [`${rowsWithoutPublished} of ${rows.length} rows have no published_statuses: ${PUBLISHED_REMEDY}`] : [],
      alerts: untold,
    },
  };
}

interface Alerts {
  readonly evidence: AlertEvidence;
  readonly untold: readonly string[];
}

/** By the files of alerts/, and by what /status counted as open at the last rows. */
function alertEvidence({ episodes }: AlertEvidence, rows: readonly PlacedRow[], { alerts, collected, isAlone }: AlertsFound): Alerts {
  const open = alerts.open.map(episodeOf);
  const openByTopic = collected ? open : null;
  const instead = collected ? null : 'no alerts were collected: there is nothing in alerts/';
  const answers = rows.filter(({ answered }) => answered);
  const last = answers.at(-1);
  if (!last) return { evidence: { episodes, openByRest: null, openByTopic, instead }, untold: [] };
  const late = answers.filter(({ ms }) => Math.abs(last.ms - ms) <= AGREE_WITHIN_MS);
  const differing = SEVERITIES.filter(
    (severity) => !late.some((row) => row.open[severity] === null || row.open[severity] === alerts.openOfAll[severity]),
  );
  const untold = differing.map(
    (severity) => `${last.open[severity]} ${severity} were open by the last row, ${alerts.openOfAll[severity]} by the collected alerts`,
  );
  const count = last.open.CRITICAL ?? 0;
  // What only /status counts is this node's where there is no other.
  const unknown = isAlone && differing.includes('CRITICAL') && count > alerts.openOfAll.CRITICAL;
  const counted = unknown ? Array.from({ length: count - alerts.openOfAll.CRITICAL }, (_, i) => countedOnly(last, i)) : [];
  return { evidence: { episodes, openByRest: [...open, ...counted], openByTopic, instead }, untold };
}

function episodeOf({ alert_id, began, metric, severity }: AlertRecord): OpenEpisode {
  return { alertId: alert_id, metric, severity, since: began };
}

function countedOnly({ ms, node }: PlacedRow, i: number): OpenEpisode {
  const severity: Severity = 'CRITICAL';
  return { alertId: `${node}: counted by /status at ${isoUtc(ms)} (${i + 1})`, metric: 'not known', severity, since: null };
}
