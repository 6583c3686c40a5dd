import { Fragment, type VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { views } from 'views';
import { messages } from '../messages/messages.ts';
import type { Status } from '../types.ts';
import type { View, ViewProps } from '../views/view.ts';
import { Ring, STATUS_ICONS } from './icons.tsx';
import { hrefOf, type Route } from './route.ts';
import { Settings } from './settings.tsx';
import { TokenForm } from './token-form.tsx';

interface AppProps {
  readonly view: ViewProps;
  /** Whether a token has been entered. */
  readonly hadToken: boolean;
  readonly onToken: (token: string) => void;
}

/** The view named in the address; without a name, all nodes if there are several, else the only node. Null: there is no such view. */
export function viewOf({ view: name }: Route, nodes: number): View | null {
  const wanted = name === '' ? (nodes > 1 ? 'wall' : 'nodes') : name;
  return views.find((view) => view.name === wanted) ?? null;
}

/** The frame around the views: the machine, the navigation, the state of the connection. */
export function App({ hadToken, onToken, view: props }: AppProps): VNode {
  const { head, host, link, route, state, tiles } = props;
  const isLocked = state.connection.phase === 'locked';
  // A view becomes visible once what determines its layout is loaded: which nodes there are, how they are, and the open alerts. It keeps
  // its scroll position and full screen while it loads again after the page was hidden.
  const isLoading =
    link.state === 'connecting' && (state.alerts === 'loading' || !state.health || tiles.find(({ isLocal }) => isLocal)?.isStale !== false);
  const view = isLoading && tiles.length === 0 ? null : viewOf(route, tiles.length);
  const word = isLocked ? messages.shell.locked : head.status === null ? '…' : messages.status[head.status].word;
  const title = [word, route.item ?? host, ...(view ? [view.label()] : []), 'edge-health'].join(' · ');
  useEffect(() => {
    document.title = title;
  }, [title]);
  const icon = isLocked ? null : head.status;
  useEffect(() => showIcon(icon), [icon]);
  // The key creates a new form after each refusal, which clears the input and reports the rejected token.
  if (isLocked) return <TokenForm key={state.connection.sinceMs} rejected={hadToken} onToken={onToken} />;
  const StatusIcon = head.status === null ? Ring : STATUS_ICONS[head.status];
  return (
    <Fragment>
      <header class={`top ${link.state}`}>
        <a class={`mark ${(head.status ?? 'none').toLowerCase()}`} href={hrefOf({ view: '' })} title={head.sentence}>
          <StatusIcon />
          <span>{word}</span>
        </a>
        <div class="who">
          <h1>{host}</h1>
          <p>{state.status?.host?.model ?? '\u00a0'}</p>
        </div>
        <nav class="views" aria-label={messages.shell.views}>
          <ul>
            {views.map((other) => (
              <li key={other.name}>
                <a href={hrefOf({ view: other.name })} aria-current={other === view ? 'page' : undefined}>
                  <other.Icon />
                  <span>{other.label()}</span>
                  <Badge count={other.badge?.(props) ?? 0} />
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="link">
          <p class="first">{link.first}</p>
          <p class="second">{link.second || '\u00a0'}</p>
        </div>
        <Settings />
      </header>
      {isLoading && <p class="loading muted">{messages.shell.loading}</p>}
      <div class="content" aria-busy={isLoading}>
        {view && <view.Component key={`${view.name} ${route.item}`} {...props} />}
        {!view && !isLoading && (
          <main class="page">
            <section class="card">
              <h2>{messages.shell.noSuchView}</h2>
              <p>
                <a href={hrefOf({ view: 'wall' })}>{messages.shell.toStart}</a>
              </p>
            </section>
          </main>
        )}
      </div>
    </Fragment>
  );
}

function Badge({ count }: { count: number }): VNode | null {
  return count === 0 ? null : <span class="badge">{count}</span>;
}

/** Shows the worst status as the icon of the browser tab. */
function showIcon(status: Status | null): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel=icon]');
  if (link) link.href = `status/${(status ?? 'none').toLowerCase()}.svg`;
}
