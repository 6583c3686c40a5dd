import { render } from 'preact';
import { Api, type TokenStore } from './api.ts';
import { App } from './app.tsx';
import { Monitor, TIMING } from './monitor.ts';

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
const monitor = new Monitor(new Api(document.baseURI, tokens), draw, TIMING, nodeOfUrl());

function draw(): void {
  const { clocks, state } = monitor;
  const now = performance.now();
  render(
    <App
      state={state}
      nowMs={clocks.machineNowMs}
      shownNowMs={clocks.shownNowMs}
      tiles={state.fleet.tiles(state.status?.nodes ?? [], state.statusAtMs, now)}
      statusAgeSeconds={(now - state.statusAtMs) / 1000}
      clockDifferenceMs={clocks.differenceMs}
      hadToken={tokens.get() !== null}
      onWindow={(window) => monitor.selectWindow(window)}
      onNode={selectNode}
      onToken={(token) => {
        tokens.set(token);
        monitor.unlock();
      }}
    />,
    root,
  );
}

/** The URL names the node that is shown, so that a reload or a shared link shows the same node. */
function nodeOfUrl(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get('node');
}

function selectNode(node: string): void {
  const { local } = monitor.state;
  history.replaceState(null, '', node === local ? location.pathname + location.search : `#${new URLSearchParams({ node })}`);
  monitor.selectNode(node);
}

monitor.start();
addEventListener('hashchange', () => {
  const node = nodeOfUrl() ?? monitor.state.local;
  if (node !== null) monitor.selectNode(node);
});
addEventListener('online', () => monitor.reconnectNow());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') monitor.reconnectNow();
});
