import './style.css';
import type { VNode } from 'preact';
import { SEVERITIES } from '../../../../src/core/alerts/alert.ts';
import { markLookAlike } from '../../../../src/core/look-alike.ts';
import { duration } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { type Episode, type EpisodeFilter, episodesOf, inOrder, matches } from '../../model/episodes.ts';
import { compareNames } from '../../model/fleet.ts';
import { fetchPastChanges } from '../../model/requests.ts';
import { Bell, SEVERITY_ICONS, STATUS_ICONS } from '../../page/icons.tsx';
import { Failure, useRequest } from '../../page/request.tsx';
import { hrefOf, replaceRoute } from '../../page/route.ts';
import { Time } from '../../page/time.tsx';
import { alertTitle, metricName } from '../../text.ts';
import type { Alert } from '../../types.ts';
import type { View, ViewProps } from '../view.ts';
import { EpisodePage } from './episode-page.tsx';

const PERIODS: Readonly<Record<string, number>> = { '24h': 24, '7d': 168, '30d': 720 };

/** Open and past alerts of all nodes with filters, or one of them. */
function Alerts(props: ViewProps): VNode {
  const { item } = props.route;
  return item === null ? <AlertsOfPeriod {...props} /> : <EpisodePage {...props} id={item} />;
}

function AlertsOfPeriod(props: ViewProps): VNode {
  const { api, nowMs, route, state } = props;
  const { query } = route;
  const period = query['period'] !== undefined && query['period'] in PERIODS ? query['period'] : '24h';
  const past = useRequest((signal) => fetchPastChanges(api, PERIODS[period] as number, signal), state.connection, [period]);
  const isLoaded = past.value !== null && past.problem === null;
  // Later changes arrive on the event stream.
  const live = [...state.book.open, ...state.book.resolved].map(({ alert }) => alert);
  const episodes = episodesOf([...(past.value?.changes ?? []), ...live]);
  const filter: EpisodeFilter = {
    node: query['node'] ?? null,
    severity: SEVERITIES.find((severity) => severity === query['severity']) ?? null,
    metric: query['metric'] ?? null,
    state: query['state'] === 'open' || query['state'] === 'past' ? query['state'] : null,
  };
  const shown = inOrder(episodes.filter((episode) => matches(filter, episode)));
  const text = messages.episodes;
  return (
    <main class={`page one${props.link.state === 'gone' ? ' lost' : ''}`}>
      <Filters filter={filter} period={period} query={query} episodes={episodes} />
      <section class="card episodes" aria-labelledby="episodes-title" aria-busy={past.value === null && past.problem === null}>
        <div class="bar">
          <h2 id="episodes-title">{isLoaded ? text.count(shown.length) : text.title}</h2>
          {props.link.state === 'gone' && <span class="known">{messages.shell.lastKnown}</span>}
        </div>
        <Failure of={past} />
        {past.value === null && past.problem === null && <p class="muted">{messages.shell.loading}</p>}
        {isLoaded && shown.length === 0 && (
          <p class="calm">
            <STATUS_ICONS.OK />
            {text.none}
          </p>
        )}
        <ul>
          {shown.map((episode) => (
            <li key={episode.id}>
              <Row episode={episode} nowMs={nowMs} />
            </li>
          ))}
        </ul>
        {past.value?.isMore && <p class="muted">{text.isMore}</p>}
      </section>
    </main>
  );
}

function Row({ episode, nowMs }: { episode: Episode; nowMs: number }): VNode {
  const { changes, current, fromMs, id, node, severity, toMs } = episode;
  const shown = toMs === null ? current : severity;
  const Icon = SEVERITY_ICONS[shown];
  const last = changes.at(-1) as Alert;
  const length = duration(((toMs ?? nowMs) - fromMs) / 1000);
  // The alert was raised before the period for which changes are loaded.
  const isCut = changes[0]?.resolved === true;
  const state = isCut ? messages.episodes.resolved : toMs === null ? messages.episodes.openFor(length) : messages.episodes.lasted(length);
  return (
    <a class={`episode ${toMs === null ? `open ${shown.toLowerCase()}` : 'past'}`} href={hrefOf({ view: 'alerts', item: id })}>
      <span class={`state ${shown.toLowerCase()}`}>
        <Icon />
        {messages.status[shown].word}
      </span>
      <span class="what">
        <b>{markLookAlike(node)}</b> {alertTitle({ ...last, severity: shown }, node, toMs === null ? 'present' : 'past')}
      </span>
      <span class="when">
        <Time ms={fromMs} nowMs={nowMs} /> · {state}
      </span>
    </a>
  );
}

interface FiltersProps {
  readonly filter: EpisodeFilter;
  readonly period: string;
  readonly query: Readonly<Record<string, string>>;
  readonly episodes: readonly Episode[];
}

function Filters({ episodes, filter, period, query }: FiltersProps): VNode {
  const text = messages.episodes;
  const set = (name: string, value: string): void => {
    const { [name]: _, ...others } = query;
    replaceRoute({ view: 'alerts', query: value === '' ? others : { ...others, [name]: value } });
  };
  const unique = (values: readonly string[]): string[] => [...new Set(values)].sort(compareNames);
  const nodes = unique([...episodes.map(({ node }) => node), ...(filter.node === null ? [] : [filter.node])]);
  const metrics = unique([...episodes.map(({ metric }) => metric), ...(filter.metric === null ? [] : [filter.metric])]);
  return (
    <search class="filters">
      <Choice
        label={text.period}
        name="period"
        value={period}
        options={Object.keys(PERIODS).map((key) => [key, text.periods[key as '24h']])}
        onChange={set}
      />
      <Choice
        label={text.state}
        name="state"
        value={filter.state ?? ''}
        options={[
          ['', text.all],
          ['open', text.open],
          ['past', text.past],
        ]}
        onChange={set}
      />
      <Choice
        label={text.severity}
        name="severity"
        value={filter.severity ?? ''}
        options={[['', text.all], ...SEVERITIES.toReversed().map((one) => [one, messages.status[one].word] as const)]}
        onChange={set}
      />
      <Choice
        label={text.node}
        name="node"
        value={filter.node ?? ''}
        options={[['', text.all], ...nodes.map((one) => [one, markLookAlike(one)] as const)]}
        onChange={set}
      />
      <Choice
        label={text.metric}
        name="metric"
        value={filter.metric ?? ''}
        options={[['', text.all], ...metrics.map((one) => [one, metricName(one)] as const)]}
        onChange={set}
      />
    </search>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (name: string, value: string) => void;
}

function Choice({ label, name, onChange, options, value }: ChoiceProps): VNode {
  return (
    <label>
      {label}
      <select name={name} value={value} onChange={(event) => onChange(name, event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key} selected={key === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

const view: View = {
  name: 'alerts',
  order: 3,
  Icon: Bell,
  label: () => messages.episodes.title,
  badge: ({ state }) => state.book.open.length,
  Component: Alerts,
};
export default view;
