import type { VNode } from 'preact';
import { type Entry, openOnOtherNodes } from './alert-book.ts';
import { plural, timeOfDay } from './format.ts';
import { SEVERITY_ICONS, STATUS_ICONS } from './icons.tsx';
import type { PageState } from './page-state.ts';
import { alertFigures, alertTitle, otherNodesText } from './text.ts';

interface AlertListProps {
  readonly state: PageState;
  /** Whether the data is the last known, not current. */
  readonly isOutdated: boolean;
  readonly nowMs: number;
}

/** Open alerts, newest first. A live region: screen readers announce each change. */
export function AlertList({ state, isOutdated, nowMs }: AlertListProps): VNode {
  const { alerts, book, local, node, status } = state;
  // The local node's page lists the alerts of all nodes, a remote node's page only its own.
  const open = node === local ? book.open : book.open.filter((entry) => entry.node === node);
  const otherNodes = node === local ? null : openOnOtherNodes(book, node);
  return (
    <section class="card alerts" aria-labelledby="alerts-title">
      <div class="bar">
        <h2 id="alerts-title">Alerts</h2>
        {isOutdated && open.length > 0 && <span class="known">last known</span>}
      </div>
      <div aria-live="polite">
        {alerts === 'failed' && <p class="muted">{unreadableText(status?.open_alerts)}</p>}
        {alerts === 'loading' && <p class="muted">Not known yet</p>}
        {alerts === 'ready' && open.length === 0 && isOutdated && <p class="muted">No open alerts at last update.</p>}
        {alerts === 'ready' && open.length === 0 && !isOutdated && (
          <p class="calm">
            <STATUS_ICONS.OK />
            No open alerts{node === local ? '' : ` of ${node}`}
          </p>
        )}
        {open.length > 0 && (
          <ul>
            {open.map(({ alert, node: of, sinceMs }) => {
              const Icon = SEVERITY_ICONS[alert.severity];
              return (
                <li key={alert.alert_id} class={`alert ${alert.severity.toLowerCase()}`}>
                  <Icon />
                  <div>
                    <p class="severity">{alert.severity}</p>
                    <p class="title">{alertTitle(alert, of)}</p>
                    <p class="figures">{alertFigures(alert)}</p>
                    <p class="figures">
                      since {timeOfDay(sinceMs, nowMs)}
                      {of === node ? '' : ` · ${of}`}
                    </p>
                  </div>
                </li>
              );
            })}
          </ul>
        )}
        {otherNodes && <p class="muted">{otherNodesText(otherNodes)}.</p>}
      </div>
    </section>
  );
}

function unreadableText(counts: Readonly<Record<string, number>> | undefined): string {
  const count = Object.values(counts ?? {}).reduce((sum, n) => sum + n, 0);
  return `The list of alerts cannot be read right now${counts ? `; the service counts ${plural(count, 'open alert')}` : ''}.`;
}

interface ResolvedListProps {
  readonly entries: readonly Entry[];
  readonly node: string | null;
  readonly nowMs: number;
}

/** The alerts that were resolved last. */
export function ResolvedList({ entries, node, nowMs }: ResolvedListProps): VNode | null {
  if (entries.length === 0) return null;
  return (
    <section class="card resolved" aria-labelledby="resolved-title">
      <h2 id="resolved-title">Recently resolved</h2>
      <ul>
        {entries.map(({ alert, node: of }) => (
          <li key={alert.alert_id}>
            <span>
              {alertTitle(alert, of, 'past')}
              {of === node ? '' : ` (${of})`}
            </span>
            <time dateTime={alert.timestamp}>{timeOfDay(Date.parse(alert.timestamp), nowMs)}</time>
          </li>
        ))}
      </ul>
    </section>
  );
}
