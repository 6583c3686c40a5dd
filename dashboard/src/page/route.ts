/** The address of a view, as in `#/alerts/ID?node=arm`: a reload or a shared link shows the same view. */
export interface Route {
  /** Name of the view; empty: the page was opened without one. */
  readonly view: string;
  /** The part after the view's name, such as the name of a node; null: none. */
  readonly item: string | null;
  /** Filters and time range. */
  readonly query: Readonly<Record<string, string>>;
}

/** Reads `location.hash`. Names of nodes may contain slashes, so everything after the view's name is one item. */
export function readRoute(hash: string): Route {
  const [path = '', query = ''] = split(hash.replace(/^#\/?/, ''), '?');
  const [view = '', item = ''] = split(path, '/');
  return { view: decoded(view), item: item === '' ? null : decoded(item), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The `href` of a route. */
export function hrefOf({ view, item = null, query = {} }: Partial<Route> & Pick<Route, 'view'>): string {
  const parameters = new URLSearchParams(query).toString();
  return `#/${view}${item === null ? '' : `/${encodeURIComponent(item)}`}${parameters === '' ? '' : `?${parameters}`}`;
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** An address typed by hand may contain a `%` that encodes nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Changes the address without adding an entry to the browser's history, for example when a filter changes. */
export function replaceRoute(route: Parameters<typeof hrefOf>[0]): void {
  history.replaceState(null, '', hrefOf(route));
  dispatchEvent(new Event('routechange'));
}
