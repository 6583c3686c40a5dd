import { type AlertBook, EMPTY_BOOK } from './alert-book.ts';
import { type Connection, firstConnection } from './connection.ts';
import { Fleet } from './fleet.ts';
import { Series } from './series.ts';
import type { HealthStatus, StatusDocument } from './types.ts';
import { planWindow, type WindowName } from './windows.ts';

/** What came of asking for a list. */
export type Loaded = 'loading' | 'ready' | 'failed';

/** Everything there is to show. */
export interface PageState {
  readonly connection: Connection;
  readonly status: StatusDocument | null;
  /** When `status` was told, on the clock of performance.now(). */
  readonly statusAtMs: number;
  /** The monitoring node of the machine that serves this page. */
  readonly local: string | null;
  /** The one whose measurements are shown: that, unless another was chosen. */
  readonly node: string | null;
  /** Of that node. */
  readonly health: HealthStatus | null;
  readonly fleet: Fleet;
  readonly book: AlertBook;
  readonly alerts: Loaded;
  readonly window: WindowName;
  readonly series: Series;
  readonly history: Loaded;
  /** How often the node publishes that is shown. */
  readonly hertz: number;
}

/** As long as nobody said how often is published. */
export const DEFAULT_HERTZ = 1;

/** Before anything was received. */
export function firstState(): PageState {
  const { bucketMs, windowMs } = planWindow('5min', DEFAULT_HERTZ);
  return {
    connection: firstConnection(performance.now()),
    status: null,
    statusAtMs: 0,
    local: null,
    node: null,
    health: null,
    fleet: new Fleet(),
    book: EMPTY_BOOK,
    alerts: 'loading',
    window: '5min',
    series: new Series(windowMs, bucketMs),
    history: 'loading',
    hertz: DEFAULT_HERTZ,
  };
}
