import { render } from 'preact';
import { Api, type TokenStore } from './api.ts';
import { App } from './app.tsx';
import { Monitor, TIMING } from './monitor.ts';

const TOKEN_KEY = 'edge-health-token';

/** The token lives as long as the browser tab. Where storage is forbidden it lives as long as the page. */
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
const monitor = new Monitor(new Api(document.baseURI, tokens), draw, TIMING, nodeOfAddress());

function draw(): void {
  const { clocks, state } = monitor;
  const now = performance.now();
  render(
    <App
      state={state}
      nowMs={clocks.machineNowMs}
      shownNowMs={clocks.shownNowMs}
      tiles={state.fleet.tiles(state.status?.nodes ?? [], state.statusAtMs, now)}
      sinceStatusSeconds={(now - state.statusAtMs) / 1000}
      clockDifferenceMs={clocks.differenceMs}
      hadToken={tokens.get() !== null}
      onWindow={(window) => monitor.show(window)}
      onNode={choose}
      onToken={(token) => {
        tokens.set(token);
        monitor.unlock();
      }}
    />,
    root,
  );
}

/** The address names the node that is shown, so that it is shown again after a reload, and can be told to others. */
function nodeOfAddress(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get('node');
}

function choose(node: string): void {
  const { local } = monitor.state;
  history.replaceState(null, '', node === local ? location.pathname + location.search : `#${new URLSearchParams({ node })}`);
  monitor.choose(node);
}

monitor.start();
addEventListener('hashchange', () => {
  const node = nodeOfAddress() ?? monitor.state.local;
  if (node !== null) monitor.choose(node);
});
addEventListener('online', () => monitor.hurry());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') monitor.hurry();
});
