import type { VNode } from 'preact';
import { duration, timeOfDay } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import type { Moment, Span } from '../../page/chart.tsx';
import { SEVERITY_ICONS } from '../../page/icons.tsx';
import { hrefOf } from '../../page/route.ts';
import { Time } from '../../page/time.tsx';
import { metricName } from '../../text.ts';

/** Lists the alerts and events of the shown time, which the charts show as well. */
export function Events({ moments, nowMs, spans }: { moments: readonly Moment[]; nowMs: number; spans: readonly Span[] }): VNode | null {
  const text = messages.node;
  if (moments.length === 0 && spans.length === 0) return null;
  return (
    <section class="card events" aria-labelledby="events-title">
      <h3 id="events-title">{text.events}</h3>
      <ul>
        {spans.toReversed().map((span) => {
          const Icon = SEVERITY_ICONS[span.severity];
          return (
            <li key={span.id}>
              <a class={`state ${span.severity.toLowerCase()}`} href={hrefOf({ view: 'alerts', item: span.id })}>
                <Icon />
                {metricName(span.metric)}
              </a>
              <span>
                {Number.isFinite(span.fromMs) && <Time ms={span.fromMs} nowMs={nowMs} />}
                {' – '}
                {span.toMs === null ? text.stillOpen : timeOfDay(span.toMs, nowMs)}
              </span>
            </li>
          );
        })}
        {moments.toReversed().map((moment) => (
          <li key={`${moment.kind} ${moment.atMs}`}>
            <span>{momentText(moment)}</span>
            <Time ms={moment.atMs} nowMs={nowMs} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function momentText({ kind, seconds }: Moment): string {
  const text = messages.node;
  if (kind === 'restart') return text.restart;
  const by = duration(Math.abs(seconds));
  if (kind === 'suspend') return text.suspend(by);
  return seconds >= 0 ? text.clockForward(by) : text.clockBack(by);
}
