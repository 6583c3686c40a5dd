import { render } from 'preact';
import { Api, type TokenStore } from './api.ts';
import { App } from './app.tsx';
import { Monitor } from './monitor.ts';

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
const monitor = new Monitor(new Api(document.baseURI, tokens), draw);

function draw(): void {
  const { clockDifferenceMs, machineNowMs, state } = monitor;
  render(
    <App
      state={state}
      nowMs={machineNowMs}
      sinceStatusSeconds={(performance.now() - state.statusAtMs) / 1000}
      clockDifferenceMs={clockDifferenceMs}
      hadToken={tokens.get() !== null}
      onWindow={(window) => monitor.show(window)}
      onToken={(token) => {
        tokens.set(token);
        monitor.unlock();
      }}
    />,
    root,
  );
}

monitor.start();
addEventListener('online', () => monitor.hurry());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') monitor.hurry();
});
