import './styles/style.css';
import { render } from 'preact';
import { chooseLanguage } from './messages/messages.ts';
import { Api, type TokenStore } from './model/api.ts';
import { Monitor, TIMING } from './model/monitor.ts';
import type { Range } from './model/windows.ts';
import { App } from './page/app.tsx';
import { viewProps } from './page/page.ts';
import { hrefOf, readRoute } from './page/route.ts';
import { applyScheme } from './page/settings.tsx';
import { queryOf, readRange } from './views/node/range.ts';

const TOKEN_KEY = 'edge-health-token';

/** Keeps the token in the session storage of the tab, or in memory if the browser forbids storage. */
function tokenStore(): TokenStore {
  let token: string | null = null;
  try {
    token = sessionStorage.getItem(TOKEN_KEY);
  } catch {}
  return {
    get: () => token,
    set: (value) => {
      token = value;
      try {
        sessionStorage.setItem(TOKEN_KEY, value);
      } catch {}
    },
  };
}

const root = document.getElementById('app') as HTMLElement;
const tokens = tokenStore();
/** The hash of the worker's code keeps pages of different versions apart. */
declare const EVENT_WORKER_HASH: string;
const worker = typeof SharedWorker === 'function' ? new URL(`event-worker.js?${EVENT_WORKER_HASH}`, document.baseURI) : null;
const api = new Api(document.baseURI, tokens, worker);
const monitor = new Monitor(api, draw, TIMING, shownNode(), shownRange());

function draw(): void {
  const { clocks, state } = monitor;
  const route = readRoute(location.hash);
  render(
    <App
      view={viewProps({ api, clocks, route, selectRange, state }, performance.now(), location.hostname)}
      hadToken={tokens.get() !== null}
      onToken={(token) => {
        tokens.set(token);
        monitor.unlock();
      }}
    />,
    root,
  );
}

/** The node whose measurements are loaded; null: the local one. */
function shownNode(): string | null {
  const { item, view } = readRoute(location.hash);
  return view === 'nodes' ? item : null;
}

/** The time range of the charts is part of the address, too. Changing it adds no entry to the browser's history. */
function shownRange(): Range {
  return readRange(readRoute(location.hash).query);
}

function selectRange(range: Range): void {
  const { item, view } = readRoute(location.hash);
  history.replaceState(null, '', hrefOf({ view: view === '' ? 'nodes' : view, item, query: queryOf(range) }));
  monitor.selectRange(range);
}

/** A hidden page has no connection, no timer and nothing to draw. Its title and icon show no status, since none would stay true. */
function showOrPause(): void {
  if (document.visibilityState === 'visible') monitor.start();
  else monitor.stop();
  draw();
}

const language = chooseLanguage(navigator.languages);
document.documentElement.lang = language.tag;
document.documentElement.dir = language.direction;
applyScheme();
showOrPause();
document.addEventListener('visibilitychange', showOrPause);
addEventListener('hashchange', () => {
  monitor.selectRange(shownRange());
  monitor.selectNode(shownNode());
  scrollTo(0, 0);
  draw();
});
addEventListener('routechange', draw);
addEventListener('online', () => monitor.reconnectNow());
