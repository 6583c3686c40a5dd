import { Fragment, type VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { AlertList, ResolvedList } from './alert-list.tsx';
import { Footer } from './footer.tsx';
import { Ring, STATUS_ICONS } from './icons.tsx';
import { Metrics } from './metrics.tsx';
import type { PageState } from './monitor.ts';
import { Nodes } from './nodes.tsx';
import { TokenForm } from './token-form.tsx';
import type { StatusDocument } from './types.ts';
import type { WindowName } from './windows.ts';
import { type Headline, headline, type LinkWords, linkWords, notices } from './words.ts';

export interface AppProps {
  readonly state: PageState;
  /** The machine's wall clock. */
  readonly nowMs: number;
  /** How old /status is. */
  readonly sinceStatusSeconds: number;
  readonly clockDifferenceMs: number | null;
  /** Whether a token was sent. */
  readonly hadToken: boolean;
  readonly onWindow: (window: WindowName) => void;
  readonly onToken: (token: string) => void;
}

export function App(props: AppProps): VNode {
  const { state, nowMs } = props;
  const { book, health, node, status } = state;
  const link = linkWords(state.connection, health ? Date.parse(health.timestamp) : null, nowMs);
  const head = headline(link, health, book, node);
  const isLocked = state.connection.phase === 'locked';
  const name = status?.host?.hostname ?? location.hostname;
  const title = `${isLocked ? 'Locked' : (head.status ?? '…')} · ${name} · edge-health`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  // A new form for every refusal: what was entered before is gone, and it is said that it was wrong.
  if (isLocked) return <TokenForm key={state.connection.sinceMs} rejected={props.hadToken} onToken={props.onToken} />;
  const isLast = link.state === 'gone';
  return (
    <Fragment>
      <Header name={name} status={status} node={node} link={link} />
      <main class={isLast ? 'page last' : 'page'}>
        <div class="lead">
          <Hero head={head} />
          <Notices lines={notices(status, props.clockDifferenceMs, nowMs)} />
        </div>
        <div class="side">
          <AlertList state={state} isLast={isLast} nowMs={nowMs} />
          <ResolvedList entries={book.resolved} node={node} nowMs={nowMs} />
          <Nodes nodes={status?.nodes ?? []} laterSeconds={props.sinceStatusSeconds} isLast={isLast} />
        </div>
        <Metrics state={state} isLast={isLast} nowMs={nowMs} onWindow={props.onWindow} />
      </main>
      <Footer status={status} laterSeconds={isLast ? 0 : props.sinceStatusSeconds} />
    </Fragment>
  );
}

interface HeaderProps {
  readonly name: string;
  readonly status: StatusDocument | null;
  readonly node: string | null;
  readonly link: LinkWords;
}

function Header({ name, status, node, link }: HeaderProps): VNode {
  const model = [status?.host?.model, node].filter(Boolean).join(' · ');
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

function Hero({ head }: { head: Headline }): VNode {
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
