import type { TestVerdict } from '../engine/judgement.ts';
import type { Check } from './check.ts';
import type { AlertFindings, Findings } from './findings.ts';

const TEMPERATURE = '/temperature/';
const WAYS = { topic: 'on the topic', events: 'on /events', rest: 'in /alerts', peer: 'at the independent subscriber' } as const;
type AlertWay = keyof typeof WAYS;

/** How the episodes of two ways differ, in words; the changes of each are compared, in their order. */
function differences(by: AlertFindings['byWay'], one: AlertWay, other: AlertWay): string[] {
  const [a, b] = [by[one], by[other]];
  if (a === null || b === null) return [];
  const ids = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return ids
    .filter((id) => a[id]?.join(', ') !== b[id]?.join(', '))
    .map((id) => `${id} ${WAYS[one]}: ${a[id]?.join(', ') ?? 'not there'}; ${WAYS[other]}: ${b[id]?.join(', ') ?? 'not there'}`);
}

/** Every alert that was raised was resolved, and is told the same by every way. */
export function alertsCheck({ alerts }: Findings): Check {
  const { byWay, turns, unanswered } = alerts;
  const events = byWay.events ?? {};
  const ids = Object.keys(events);
  const ofTemperature = ids.filter((id) => id.includes(TEMPERATURE));
  const problems = [
    ...unanswered,
    ...ids.filter((id) => id.includes(TEMPERATURE) && !events[id]?.at(-1)?.endsWith('resolved')).map((id) => `${id} is not resolved`),
    ...(['topic', 'rest', 'peer'] as const).flatMap((way) => differences(byWay, 'events', way)),
  ];
  if (ofTemperature.length !== turns && unanswered.length === 0) problems.push(`${turns} causes, but ${ofTemperature.length} episodes`);
  const missing = [
    ...(turns === 0 ? ['no alert was raised'] : []),
    ...(byWay.events === null ? ['the event stream was not heard'] : []),
    ...(byWay.rest === null ? ['/alerts did not answer at the end'] : []),
  ];
  const verdict: TestVerdict = problems.length > 0 ? 'FAIL' : missing.length > 0 ? 'INCOMPLETE' : 'PASS';
  const counted = Object.entries(WAYS).flatMap(([way, title]) => {
    const episodes = byWay[way as AlertWay];
    return episodes === null ? [] : [{ label: `episodes ${title}`, value: Object.keys(episodes).length, unit: '' }];
  });
  return {
    check: 'alerts',
    title: 'Alerts',
    verdict,
    requirement: 'every alert raised was resolved, and is told alike on the topic, /events and in /alerts',
    formula:
      'each time the temperature rises beyond both thresholds and falls again makes one episode, which ends resolved; ' +
      'the changes of every episode, of other metrics too, are the same by every way, in the same order',
    measured: { label: 'alerts that do not agree or were not resolved', value: problems.length, unit: '' },
    limit: { comparison: '<=', value: 0, unit: '' },
    margin: -problems.length,
    summary: `${turns} causes, ${ofTemperature.length} episodes, ${problems.length === 0 ? 'all resolved and told alike' : `${problems.length} problems`}.`,
    evidence: [...counted, { label: 'of other metrics', value: ids.length - ofTemperature.length, unit: '', informative: true }],
    tables:
      problems.length === 0
        ? []
        : [{ title: 'Alerts that are not as they should be', columns: ['what'], rows: problems.map((what) => [what]) }],
    missing,
  };
}
