import type { AlertEvidence, Evidence, OpenEpisode } from '../evidence.ts';
import { counted } from '../format.ts';
import { type Judgement, marginOf, type Table, type TestVerdict } from '../judgement.ts';

/** Passes if no CRITICAL alert is open at the end, by REST or by the topic, and both list the same open alerts. */
export function judgeAlerts({ alerts }: Evidence): Judgement {
  const { openByRest, openByTopic } = alerts;
  const critical = criticalIds(alerts);
  const differing = openByRest === null || openByTopic === null ? [] : difference(openByRest, openByTopic);
  const missing: string[] = [];
  if (openByRest === null) missing.push('the open alerts that /alerts returns at the end');
  if (openByTopic === null) missing.push(alerts.reason ?? 'the alerts of the topic');
  if (differing.length > 0) missing.push(`/alerts and the topic differ in open alerts: ${differing.join(', ')}`);
  const limit = { comparison: '<=', value: 0, unit: '' } as const;
  const verdict = critical.length > 0 ? 'FAIL' : missing.length > 0 ? 'INCOMPLETE' : 'PASS';
  const known = openByRest !== null || openByTopic !== null;
  return {
    criterion: 'alerts',
    title: 'Alerts',
    verdict,
    requirement: 'zero unresolved CRITICAL alerts',
    formula:
      'episodes of severity CRITICAL open at the end, by /alerts?resolved=false or by the changes on the topic /alerts, = 0; both must list the same open episodes',
    measured: { label: 'CRITICAL open at the end', value: known ? critical.length : null, unit: '' },
    limit,
    margin: known ? marginOf(critical.length, limit) : null,
    summary: summarize(alerts, critical.length, verdict),
    evidence: [
      { label: 'open by /alerts', value: openByRest?.length ?? null, unit: '' },
      { label: 'open by the topic', value: openByTopic?.length ?? null, unit: '' },
      { label: 'episodes that reached CRITICAL', value: alerts.episodes.CRITICAL, unit: '', informative: true },
      { label: 'episodes that reached ERROR', value: alerts.episodes.ERROR, unit: '', informative: true },
      { label: 'episodes that reached WARNING', value: alerts.episodes.WARNING, unit: '', informative: true },
    ],
    tables: [openTable(alerts)],
    missing,
  };
}

function criticalIds({ openByRest, openByTopic }: AlertEvidence): string[] {
  const critical = [openByRest, openByTopic]
    .filter((open) => open !== null)
    .flat()
    .filter(({ severity }) => severity === 'CRITICAL');
  return [...new Set(critical.map(({ alertId }) => alertId))];
}

/** Ids of episodes that are open in the first list but not in the second. */
function difference(one: readonly OpenEpisode[], other: readonly OpenEpisode[]): string[] {
  const [ids, others] = [one, other].map((episodes) => new Set(episodes.map(({ alertId }) => alertId))) as [Set<string>, Set<string>];
  return [...ids]
    .filter((id) => !others.has(id))
    .concat([...others].filter((id) => !ids.has(id)))
    .sort();
}

function summarize({ episodes, reason }: AlertEvidence, critical: number, verdict: TestVerdict): string {
  const seen = episodes.CRITICAL === 0 ? 'none were raised' : `${counted(episodes.CRITICAL, 'episode')} reached it`;
  const open = critical === 0 ? `No CRITICAL alert is open at the end (${seen})` : `${counted(critical, 'CRITICAL alert')} open at the end`;
  const doubt = verdict === 'INCOMPLETE' ? ', as far as known' : '';
  return `${open}${doubt}${reason === null ? '' : `; ${reason}`}.`;
}

function openTable({ openByRest, openByTopic }: AlertEvidence): Table {
  const rest = new Map(openByRest?.map((episode) => [episode.alertId, episode]));
  const topic = new Map(openByTopic?.map((episode) => [episode.alertId, episode]));
  const rows = [...new Map([...topic, ...rest])]
    .sort(
      // Stryker disable next-line EqualityOperator: the keys of a map differ
      ([one], [other]) => (one < other ? -1 : 1),
    )
    .map(([id, { metric }]) => {
      const since = topic.get(id)?.since ?? rest.get(id)?.since ?? null;
      return [id, metric, rest.get(id)?.severity ?? null, topic.get(id)?.severity ?? null, since];
    });
  return { title: 'Open at the end', columns: ['alert', 'metric', 'by /alerts', 'by the topic', 'since'], rows };
}
