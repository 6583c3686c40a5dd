import type { VNode } from 'preact';
import { timeOfDay } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { openOnOtherNodes, raisedMs } from '../../model/alert-book.ts';
import { SEVERITY_ICONS, STATUS_ICONS } from '../../page/icons.tsx';
import type { PageState } from '../../page/page-state.ts';
import { hrefOf } from '../../page/route.ts';
import { alertFigures, alertTitle, otherNodesText } from '../../text.ts';

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
        <h2 id="alerts-title">{messages.alerts.title}</h2>
        {isOutdated && open.length > 0 && <span class="known">{messages.shell.lastKnown}</span>}
      </div>
      <div aria-live="polite">
        {alerts === 'failed' && <p class="muted">{unreadableText(status?.open_alerts)}</p>}
        {alerts === 'loading' && <p class="muted">{messages.alerts.notKnownYet}</p>}
        {alerts === 'ready' && open.length === 0 && isOutdated && <p class="muted">{messages.alerts.noneAtLastUpdate}</p>}
        {alerts === 'ready' && open.length === 0 && !isOutdated && (
          <p class="calm">
            <STATUS_ICONS.OK />
            {node === local || node === null ? messages.alerts.none : messages.alerts.noneOf(node)}
          </p>
        )}
        {open.length > 0 && (
          <ul>
            {open.map((entry) => {
              const { alert, node: of } = entry;
              const Icon = SEVERITY_ICONS[alert.severity];
              return (
                <li key={alert.alert_id} class={`alert ${alert.severity.toLowerCase()}`}>
                  <Icon />
                  <div>
                    <p class="severity">{messages.status[alert.severity].word}</p>
                    <p class="title">
                      <a href={hrefOf({ view: 'alerts', item: alert.alert_id })}>{alertTitle(alert, of)}</a>
                    </p>
                    <p class="figures">{alertFigures(alert)}</p>
                    <p class="figures">
                      {messages.alerts.since(timeOfDay(raisedMs(entry, state.changes), nowMs))}
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
  if (!counts) return messages.alerts.notReadable;
  return messages.alerts.notReadableButCounted(Object.values(counts).reduce((sum, n) => sum + n, 0));
}
