import type { VNode } from 'preact';
import type { Api } from '../model/api.ts';
import type { Tile } from '../model/fleet.ts';
import type { Range } from '../model/windows.ts';
import type { PageState } from '../page/page-state.ts';
import type { Route } from '../page/route.ts';
import type { Headline, LinkText } from '../text.ts';

/** Everything that a view may show. Times are milliseconds since the epoch. */
export interface ViewProps {
  readonly route: Route;
  readonly state: PageState;
  readonly api: Api;
  /** All nodes, the local one first, with the worse of their status and their open alerts. */
  readonly tiles: readonly Tile[];
  /** Wall clock of the machine that serves this page. */
  readonly nowMs: number;
  /** Wall clock of the node that is shown. */
  readonly shownNowMs: number;
  /** Name of the machine. */
  readonly host: string;
  /** The worst status of all nodes, and its reason. */
  readonly head: Headline;
  readonly link: LinkText;
  /** Age of the last /status response. */
  readonly statusAgeSeconds: number;
  readonly clockDifferenceMs: number | null;
  readonly selectRange: (range: Range) => void;
}

/** A view: a folder here with a file `view.tsx` whose default export is this. The build discovers it; there is no other list of views. */
export interface View {
  /** The first part of its address. */
  readonly name: string;
  /** Position in the navigation, ascending. */
  readonly order: number;
  readonly Icon: () => VNode;
  /** Its name in the navigation, in the language in use. */
  readonly label: () => string;
  /** A number beside the label; 0: none. */
  readonly badge?: (props: ViewProps) => number;
  readonly Component: (props: ViewProps) => VNode;
}
