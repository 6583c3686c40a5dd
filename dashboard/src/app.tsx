import { type ComponentChildren, Fragment, type VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { openOnOtherNodes, statusWithAlerts } from './alert-book.ts';
import { AlertList, ResolvedList } from './alert-list.tsx';
import { type Tile, worstOther } from './fleet.ts';
import { Footer } from './footer.tsx';
import { Ring, STATUS_ICONS } from './icons.tsx';
import { JobList } from './job-list.tsx';
import { Metrics } from './metrics.tsx';
import { Nodes } from './nodes.tsx';
import { OtherNodesHint } from './other-nodes.tsx';
import type { PageState } from './page-state.ts';
import { clockNotices, type Headline, headline, headlineOfOther, headlineOfStaleNode, type LinkText, linkText, notices } from './text.ts';
import { TokenForm } from './token-form.tsx';
import type { WindowName } from './windows.ts';

export interface AppProps {
  readonly state: PageState;
  /** Wall clock of the machine that serves this page. */
  readonly nowMs: number;
  /** Wall clock of the node that is shown. */
  readonly shownNowMs: number;
  /** All nodes, including the local one. */
  readonly tiles: readonly Tile[];
  /** Age of the last /status response. */
  readonly statusAgeSeconds: number;
  readonly clockDifferenceMs: number | null;
  /** Whether a token has been entered. */
  readonly hadToken: boolean;
  readonly onWindow: (window: WindowName) => void;
  readonly onNode: (node: string) => void;
  readonly onToken: (token: string) => void;
}

export function App(props: AppProps): VNode {
  const { state, nowMs, shownNowMs } = props;
  const { book, local, node, status } = state;
  const health = state.health && { ...state.health, status: statusWithAlerts(state.health.status, book, state.health.node_name) };
  const tiles = props.tiles.map((tile) => ({ ...tile, status: statusWithAlerts(tile.status, book, tile.node) }));
  const measuredMs = health ? Date.parse(health.timestamp) : null;
  const link = linkText(state.connection, measuredMs, shownNowMs);
  const shown = node === local ? null : (tiles.find((tile) => tile.node === node) ?? null);
  const staleTile = shown?.isStale ? shown : null;
  const own = staleTile ? headlineOfStaleNode(link, staleTile.node, measuredMs, shownNowMs) : headline(link, health, book, node);
  // The local node's page covers all nodes, so it shows OK only if every node is OK.
  const worst = node === local && own.status === 'OK' ? worstOther(tiles) : null;
  const head = worst ? headlineOfOther(worst, own) : own;
  const isLocked = state.connection.phase === 'locked';
  const host = status?.host?.hostname ?? location.hostname;
  const name = node === local || node === null ? host : node;
  const title = `${isLocked ? 'Locked' : (head.status ?? '…')} · ${name} · edge-health`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  // The key creates a new form after each refusal, which clears the input and reports the rejected token.
  if (isLocked) return <TokenForm key={state.connection.sinceMs} rejected={props.hadToken} onToken={props.onToken} />;
  const isGone = link.state === 'gone';
  const isOutdated = isGone || staleTile !== null;
  const otherNodes = openOnOtherNodes(book, node);
  const isListed = tiles.some((tile) => tile.node === otherNodes?.node);
  const about = node === local ? [status?.host?.model, node] : [`seen from ${host}`];
  return (
    <Fragment>
      <Header name={name} about={about} link={link} />
      <Nodes tiles={tiles} shown={node} isOutdated={isGone} onNode={props.onNode} />
      <main class={`page${isOutdated ? ' last' : ''}${isGone ? ' lost' : ''}`}>
        <div class="lead">
          <Hero head={head}>
            {otherNodes && !isGone && <OtherNodesHint otherNodes={otherNodes} onNode={isListed ? props.onNode : null} />}
          </Hero>
          <Notices lines={[...notices(status, props.clockDifferenceMs, nowMs), ...clockNotices(shown?.node ?? null, shownNowMs - nowMs)]} />
        </div>
        <div class="side">
          <AlertList state={state} isOutdated={isGone} nowMs={nowMs} />
          <ResolvedList entries={book.resolved} node={node} nowMs={nowMs} />
          {node === local && <JobList ops={status?.ops ?? null} isOutdated={isGone} nowMs={nowMs} />}
        </div>
        <Metrics state={state} isOutdated={isOutdated} nowMs={shownNowMs} onWindow={props.onWindow} />
      </main>
      <Footer status={status} statusAgeSeconds={isGone ? 0 : props.statusAgeSeconds} />
    </Fragment>
  );
}

interface HeaderProps {
  readonly name: string;
  readonly about: readonly (string | null | undefined)[];
  readonly link: LinkText;
}

function Header({ name, about, link }: HeaderProps): VNode {
  const model = about.filter(Boolean).join(' · ');
  return (
    <header class={`top ${link.state}`}>
      <div class="who">
        <h1>{name}</h1>
        <p>{model || '\u00a0'}</p>
      </div>
      <div class="link">
        <p class="first">{link.first}</p>
        <p class="second">{link.second || '\u00a0'}</p>
      </div>
    </header>
  );
}

function Hero({ head, children }: { head: Headline; children: ComponentChildren }): VNode {
  const { sentence, status } = head;
  const StatusIcon = status === null ? Ring : STATUS_ICONS[status];
  return (
    <section class={`hero ${(status ?? 'none').toLowerCase()}`} aria-labelledby="status-title" aria-live="polite" aria-atomic="true">
      <h2 id="status-title" class="hidden">
        Overall status
      </h2>
      <StatusIcon />
      <p class="word">{status ?? '…'}</p>
      <p class="sentence">{sentence}</p>
      {children}
    </section>
  );
}

function Notices({ lines }: { lines: readonly string[] }): VNode {
  return (
    <div role="status">
      {lines.map((line) => (
        <p key={line} class="notice">
          <STATUS_ICONS.WARNING />
          {line}
        </p>
      ))}
    </div>
  );
}
