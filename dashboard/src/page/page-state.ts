import { type AlertBook, EMPTY_BOOK } from '../model/alert-book.ts';
import { type Connection, initialConnection } from '../model/connection.ts';
import { Fleet } from '../model/fleet.ts';
import { Series } from '../model/series.ts';
import { DEFAULT_RANGE, planRange, type Range } from '../model/windows.ts';
import type { Alert, HealthStatus, StatusDocument } from '../types.ts';

/** State of the request for a list. */
export type Loaded = 'loading' | 'ready' | 'failed';

/** All data that the page shows. */
export interface PageState {
  readonly connection: Connection;
  readonly status: StatusDocument | null;
  /** When `status` was received, in performance.now() time. */
  readonly statusAtMs: number;
  /** Name of the monitoring node on the machine that serves this page. */
  readonly local: string | null;
  /** Name of the node that is shown: the local one, unless another is selected. */
  readonly node: string | null;
  /** Last health status of the node that is shown. */
  readonly health: HealthStatus | null;
  readonly fleet: Fleet;
  readonly book: AlertBook;
  readonly alerts: Loaded;
  readonly range: Range;
  readonly series: Series;
  readonly history: Loaded;
  /** Changes of the shown node's alerts that were open in the range; the last one of each alert is its present state. */
  readonly changes: readonly Alert[];
  /** Publish rate of the node that is shown. */
  readonly hertz: number;
}

/** Used until /status reports the publish rate. */
export const DEFAULT_HERTZ = 1;

export function initialState(range: Range = DEFAULT_RANGE): PageState {
  const { bucketMs, windowMs } = planRange(range, DEFAULT_HERTZ);
  return {
    connection: initialConnection(performance.now()),
    status: null,
    statusAtMs: 0,
    local: null,
    node: null,
    health: null,
    fleet: new Fleet(),
    book: EMPTY_BOOK,
    alerts: 'loading',
    range,
    series: new Series(windowMs, bucketMs),
    history: 'loading',
    changes: [],
    hertz: DEFAULT_HERTZ,
  };
}
