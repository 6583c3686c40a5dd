import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { markLookAlike } from '../../../../src/core/look-alike.ts';
import { decimal, duration, limit } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { episodesOf } from '../../model/episodes.ts';
import { fetchEpisode } from '../../model/requests.ts';
import { SEVERITY_ICONS } from '../../page/icons.tsx';
import { Failure, useRequest } from '../../page/request.tsx';
import { hrefOf } from '../../page/route.ts';
import { Time } from '../../page/time.tsx';
import { alertHelp, alertTitle, isMetric } from '../../text.ts';
import type { Alert } from '../../types.ts';
import type { ViewProps } from '../view.ts';
import { EpisodeChart } from './episode-chart.tsx';

/** One alert: what it means, what to do, the values around it, and its changes. */
export function EpisodePage(props: ViewProps & { id: string }): VNode {
  const { api, id, link, nowMs, state } = props;
  const text = messages.episodes;
  // Changes arrive on the event stream, which delivers only those since the page was opened: each is a reason to load all of them.
  const live = [...state.book.open, ...state.book.resolved].map(({ alert }) => alert).filter(({ alert_id }) => alert_id === id);
  const stored = useRequest((signal) => fetchEpisode(api, id, signal), state.connection, [live[0]?.timestamp]);
  const [episode] = episodesOf([...(stored.value ?? []), ...live]);
  const back = (
    <p>
      <a href={hrefOf({ view: 'alerts' })}>{text.toAll}</a>
    </p>
  );
  if (!episode) {
    const waiting = link.state === 'gone' ? link.first : messages.shell.loading;
    return (
      <main class="page one">
        <section class="card">
          <h2>{stored.problem !== null ? text.title : stored.value === null ? waiting : text.unknown}</h2>
          <Failure of={stored} />
          {back}
        </section>
      </main>
    );
  }
  const { changes, current, fromMs, metric, node, severity, toMs } = episode;
  const shown = toMs === null ? current : severity;
  const Icon = SEVERITY_ICONS[shown];
  const last = changes.at(-1) as Alert;
  const { action, meaning } = alertHelp(last);
  const unit = isMetric(metric) ? messages.metrics[metric].unit : '';
  const facts: readonly (readonly [string, VNode | string])[] = [
    [text.node, <a href={hrefOf({ view: 'nodes', item: node })}>{markLookAlike(node)}</a>],
    [text.begin, <Time ms={fromMs} nowMs={nowMs} />],
    [text.end, toMs === null ? text.stillOpen : <Time ms={toMs} nowMs={nowMs} />],
    [text.length, duration(((toMs ?? nowMs) - fromMs) / 1000)],
  ];
  return (
    <main class={`page one${link.state === 'gone' ? ' lost' : ''}`}>
      <section class={`card alert ${shown.toLowerCase()}`} aria-labelledby="episode-title">
        <Icon />
        <div>
          <p class="severity">
            {messages.status[shown].word}
            {toMs === null ? '' : ` · ${text.resolved}`}
          </p>
          <h2 id="episode-title">{alertTitle({ ...last, severity: shown }, node, toMs === null ? 'present' : 'past')}</h2>
        </div>
      </section>
      <section class="card help">
        <h3>{text.meaning}</h3>
        <p>{meaning}</p>
        <h3>{text.action}</h3>
        <p>{action}</p>
      </section>
      <section class="card">
        <dl class="facts">
          {facts.map(([term, fact]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{fact}</dd>
            </div>
          ))}
        </dl>
        <Share />
      </section>
      {isMetric(metric) && (
        <EpisodeChart api={api} episode={episode} metric={metric} connection={state.connection} hertz={state.hertz} nowMs={nowMs} />
      )}
      <section class="card">
        <h3>{text.changes}</h3>
        <Failure of={stored} />
        <table>
          <thead>
            <tr>
              <th scope="col">{text.time}</th>
              <th scope="col">{text.severity}</th>
              <th scope="col">{text.value}</th>
              <th scope="col">{text.threshold}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={`${change.timestamp} ${change.severity} ${change.resolved}`}>
                <td>
                  <Time ms={Date.parse(change.timestamp)} nowMs={nowMs} />
                </td>
                <td>{change.resolved ? text.resolved : messages.status[change.severity].word}</td>
                <td>{change.severity === 'ERROR' ? duration(change.value) : `${decimal(change.value)} ${unit}`}</td>
                <td>{change.severity === 'ERROR' ? duration(change.threshold) : limit(change.threshold, unit)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {back}
    </main>
  );
}

/** The link to share. Without HTTPS, a page has no access to the clipboard, so the address is shown to be copied by hand. */
function Share(): VNode {
  const [isShown, setShown] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error('no clipboard'));
    copied.then(
      () => setCopied(true),
      () => setShown(true),
    );
  };
  return (
    <p class="share">
      <button type="button" onClick={copy}>
        {messages.episodes.copyLink}
      </button>
      <span role="status">{isCopied ? messages.episodes.copied : ''}</span>
      {isShown && (
        <input
          readOnly
          value={location.href}
          aria-label={messages.episodes.copyLink}
          ref={(input) => input?.select()}
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
    </p>
  );
}
