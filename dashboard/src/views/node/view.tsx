import './style.css';
import type { VNode } from 'preact';
import { markLookAlike } from '../../../../src/core/look-alike.ts';
import { messages } from '../../messages/messages.ts';
import { openOnOtherNodes, statusWithAlerts } from '../../model/alert-book.ts';
import { ageText } from '../../model/fleet.ts';
import { edgesOf } from '../../model/windows.ts';
import { Gauge } from '../../page/icons.tsx';
import { hrefOf } from '../../page/route.ts';
import { headline, headlineOfAll, headlineOfStaleNode, nodeNotices, notices } from '../../text.ts';
import type { View, ViewProps } from '../view.ts';
import { AlertList } from './alert-list.tsx';
import { Events } from './events.tsx';
import { Hero, Notices } from './hero.tsx';
import { Metrics } from './metrics.tsx';
import { OtherNodesHint } from './other-nodes.tsx';
import { momentsIn, spansIn } from './timeline.ts';

/** One node: its status, its alerts and its measurements over time. */
function NodeView(props: ViewProps): VNode {
  const { clockDifferenceMs, host, link, nowMs, route, selectRange, shownNowMs, state, tiles } = props;
  const { book, local, node, status } = state;
  const isLocal = route.item === null || route.item === local;
  const tile = tiles.find((other) => other.node === node) ?? null;
  if (status && !isLocal && !tile) return <UnknownNode name={route.item as string} />;
  const isGone = link.state === 'gone';
  const remote = isLocal ? null : (status?.nodes.find(({ node_name }) => node_name === node) ?? null);
  const staleTile = !isLocal && tile?.isStale ? tile : null;
  const health = state.health && { ...state.health, status: statusWithAlerts(state.health.status, book, state.health.node_name) };
  const measuredMs = health ? Date.parse(health.timestamp) : null;
  const own = staleTile ? headlineOfStaleNode(link, staleTile, measuredMs, shownNowMs) : headline(link, health, book, node);
  const head = isLocal && !isGone ? headlineOfAll(own, tiles) : own;
  const { fromMs, toMs } = edgesOf(state.range, shownNowMs);
  const spans = spansIn(state.changes, node, fromMs, toMs);
  const moments = isLocal ? momentsIn(status, fromMs, toMs) : [];
  const otherNodes = openOnOtherNodes(book, node);
  const isListed = tiles.some((other) => other.node === otherNodes?.node);
  return (
    <main class="node">
      <div class="subject">
        <h2>{node === null ? host : markLookAlike(node)}</h2>
        <p class="muted">{isLocal ? '' : messages.shell.seenFrom(host)}</p>
        {tiles.length > 1 && (
          <ul class="others">
            {tiles.map((other) => (
              <li key={other.node}>
                <a
                  href={hrefOf({ view: 'nodes', item: other.node })}
                  class={other.status.toLowerCase()}
                  aria-current={other.node === node ? 'true' : undefined}
                  title={`${messages.status[other.status].word}, ${ageText(other, nowMs)}`}
                >
                  {markLookAlike(other.node)}
                </a>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div class={`page${isGone || staleTile ? ' last' : ''}${isGone ? ' lost' : ''}`}>
        <div class="lead">
          <Hero head={head}>{otherNodes && !isGone && <OtherNodesHint otherNodes={otherNodes} isListed={isListed} />}</Hero>
          <Notices lines={[...notices(status, clockDifferenceMs, nowMs), ...nodeNotices(remote, shownNowMs - nowMs)]} />
        </div>
        <div class="side">
          <AlertList state={state} isOutdated={isGone} nowMs={nowMs} />
          <Events spans={spans} moments={moments} nowMs={shownNowMs} />
        </div>
        <Metrics
          state={state}
          isOutdated={isGone || staleTile !== null}
          nowMs={shownNowMs}
          spans={spans}
          moments={moments}
          onRange={selectRange}
        />
      </div>
    </main>
  );
}

function UnknownNode({ name }: { name: string }): VNode {
  return (
    <main class="page">
      <section class="card">
        <h2>{messages.shell.noSuchNode(name)}</h2>
        <p>
          <a href={hrefOf({ view: 'wall' })}>{messages.shell.toStart}</a>
        </p>
      </section>
    </main>
  );
}

const view: View = { name: 'nodes', order: 2, Icon: Gauge, label: () => messages.node.title, Component: NodeView };
export default view;
