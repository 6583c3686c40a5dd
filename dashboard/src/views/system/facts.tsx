import type { ComponentChildren, VNode } from 'preact';
import { bytes, duration, hertz } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { hrefOf } from '../../page/route.ts';
import { Time } from '../../page/time.tsx';
import type { ShutdownState, StatusDocument } from '../../types.ts';

interface CardProps {
  readonly name: string;
  readonly title: string;
  readonly isOutdated: boolean;
  readonly children: ComponentChildren;
}

/** A card of the view; `isOutdated`: it shows the last known data. */
export function Card({ children, isOutdated, name, title }: CardProps): VNode {
  return (
    <section class={`card ${name}`} aria-labelledby={`${name}-title`}>
      <div class="bar">
        <h2 id={`${name}-title`}>{title}</h2>
        {isOutdated && <span class="known">{messages.shell.lastKnown}</span>}
      </div>
      {children}
    </section>
  );
}

/** A term, its value, and an optional explanation below it. */
type Fact = readonly [term: string, value: ComponentChildren, note?: string];

function Facts({ facts }: { facts: readonly Fact[] }): VNode {
  return (
    <dl class="facts">
      {facts.map(([term, value, note = '']) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>
            {value}
            {note !== '' && <span class="note">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface CardsProps {
  readonly status: StatusDocument;
  readonly isOutdated: boolean;
  /** Added to the uptime that /status reported. */
  readonly statusAgeSeconds: number;
  readonly nowMs: number;
}

/** The service: version, rates, resource usage, configuration. */
export function ServiceCard({ isOutdated, status, statusAgeSeconds }: CardsProps): VNode {
  const { config, process, publish, temperature_sensor: sensor, uptime_seconds } = status;
  const { service } = messages.system;
  const uptime = uptime_seconds + (isOutdated ? 0 : statusAgeSeconds);
  const measured = publish.measured_hertz === null ? '…' : hertz(publish.measured_hertz);
  return (
    <Card name="service" title={service.title} isOutdated={isOutdated}>
      {config.problem !== null && <p class="stopped">{service.configProblem(config.problem)}</p>}
      {config.restart_needed.length > 0 && <p class="stopped">{service.restartNeeded(config.restart_needed.join('; '))}</p>}
      <Facts
        facts={[
          [service.version, status.version],
          [service.runningFor, duration(roundToMinutes(uptime))],
          [service.published, service.publishedOf(measured, hertz(publish.configured_hertz))],
          [service.missedSamples, String(publish.missed)],
          [service.sensor, sensor?.sensor ?? service.none, sensor?.reason ?? ''],
          [
            service.uses,
            service.usesOf(bytes(process.resident_memory_bytes), duration(process.cpu_seconds), duration(roundToMinutes(uptime))),
          ],
        ]}
      />
    </Card>
  );
}

/** Size and retention of the database, lost samples, quarantined files. */
export function StorageCard({ isOutdated, nowMs, status: { storage } }: CardsProps): VNode {
  const text = messages.system.storage;
  const size = text.sizeOf(bytes(storage.size_bytes), bytes(storage.max_bytes));
  const time = (at: string | null): ComponentChildren => (at === null ? text.none : <Time ms={Date.parse(at)} nowMs={nowMs} />);
  return (
    <Card name="storage" title={text.title} isOutdated={isOutdated}>
      {storage.state === 'degraded' && <p class="stopped">{text.degraded(storage.error ?? '')}</p>}
      <progress max={storage.max_bytes} value={storage.size_bytes} aria-label={size} />
      <Facts
        facts={[
          [text.size, size, text.sizeNote],
          [text.oldest, time(storage.oldest_sample), text.retention],
          [text.lastWrite, time(storage.last_write), text.lastWriteNote],
          ...(storage.samples_lost > 0 ? [[text.lost, String(storage.samples_lost)] as const] : []),
          ...(storage.quarantined.length > 0 ? [[text.quarantined, storage.quarantined.join(', '), text.quarantinedNote] as const] : []),
        ]}
      />
    </Card>
  );
}

/** The ROS 2 graph: transport, participants, publish counts, observers. */
export function RosCard({ isOutdated, status: { nodes, ros } }: CardsProps): VNode {
  const text = messages.system.ros;
  const isOn = ros.transport !== 'off';
  const known = (value: number | null): string => (value === null ? text.unknown : String(value));
  const { published } = ros;
  return (
    <Card name="ros" title={text.title} isOutdated={isOutdated}>
      {ros.problem !== null && <p class="stopped">{ros.problem}</p>}
      <Facts
        facts={[
          [text.transport, text.transports[ros.transport], ros.reason],
          ...(isOn
            ? ([
                [text.domain, known(ros.domain_id)],
                [text.peers, known(ros.peers)],
                [text.subscribers, known(ros.subscribers)],
              ] as const)
            : []),
          ...(published ? [[text.published, text.publishedOf(published.health_status, published.alerts)] as const] : []),
          [text.nodes, <a href={hrefOf({ view: 'wall' })}>{text.nodesOf(nodes.length)}</a>],
          ...(ros.observing || ros.observers.length === 0 ? [] : [[text.observers, ros.observers.join(', ')] as const]),
        ]}
      />
    </Card>
  );
}

/** The last safe shutdown. */
export function ShutdownCard({ isOutdated, nowMs, shutdown }: { isOutdated: boolean; nowMs: number; shutdown: ShutdownState }): VNode {
  const text = messages.system.shutdown;
  const { action, ended, message, reason, requested_by, state } = shutdown;
  return (
    <Card name="shutdown" title={text.title} isOutdated={isOutdated}>
      {state === 'none' ? (
        <p class="muted">{text.none}</p>
      ) : (
        <Facts
          facts={[
            [text.state, text.states[state], message ?? ''],
            [text.action, action],
            [text.reason, reason ?? ''],
            [text.requestedBy, requested_by ?? ''],
            ...(ended === null ? [] : [[text.ended, <Time ms={Date.parse(ended)} nowMs={nowMs} />] as const]),
          ]}
        />
      )}
    </Card>
  );
}

/** Rounds one minute or more down to whole minutes, so that the text does not change every second. */
function roundToMinutes(seconds: number): number {
  return seconds < 60 ? seconds : Math.floor(seconds / 60) * 60;
}
