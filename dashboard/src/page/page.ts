import { statusWithAlerts } from '../model/alert-book.ts';
import type { Api } from '../model/api.ts';
import type { Clocks } from '../model/clocks.ts';
import type { Range } from '../model/windows.ts';
import { headline, headlineOfAll, linkText } from '../text.ts';
import type { ViewProps } from '../views/view.ts';
import type { PageState } from './page-state.ts';
import type { Route } from './route.ts';

interface PageSources {
  readonly api: Api;
  readonly clocks: Clocks;
  readonly route: Route;
  readonly selectRange: (range: Range) => void;
  readonly state: PageState;
}

/** Derives what the views show from the state of the page. `nowMs`: performance.now(); `fallback`: the name of the host in the address. */
export function viewProps({ api, clocks, route, selectRange, state }: PageSources, nowMs: number, fallback: string): ViewProps {
  const { book, fleet, local, status, statusAtMs } = state;
  const tiles = fleet
    .tiles(status?.nodes ?? [], statusAtMs, nowMs)
    .map((tile) => ({ ...tile, status: statusWithAlerts(tile.status, book, tile.node) }));
  const own = local === null ? null : (fleet.get(local)?.health ?? null);
  const health = own && { ...own, status: statusWithAlerts(own.status, book, own.node_name) };
  const link = linkText(state.connection, own ? Date.parse(own.timestamp) : null, clocks.machineNowMs);
  const mine = headline(link, health, book, local);
  return {
    route,
    state,
    api,
    tiles,
    nowMs: clocks.machineNowMs,
    shownNowMs: clocks.shownNowMs,
    host: status?.host?.hostname ?? fallback,
    head: link.state === 'gone' ? mine : headlineOfAll(mine, tiles),
    link,
    statusAgeSeconds: (nowMs - statusAtMs) / 1000,
    clockDifferenceMs: clocks.differenceMs,
    selectRange,
  };
}
