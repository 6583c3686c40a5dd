import type { VNode } from 'preact';
import { bytes, duration, hertz } from './format.ts';
import type { StatusDocument } from './types.ts';

/** What a technician asks first. */
export function Footer({ status, laterSeconds }: { status: StatusDocument | null; laterSeconds: number }): VNode {
  if (!status) return <footer class="foot" />;
  const { publish, ros, storage, temperature_sensor: sensor } = status;
  const facts: readonly (readonly [string, string, string?])[] = [
    ['Version', status.version],
    ['Running for', duration(coarse(status.uptime_seconds + laterSeconds))],
    ['Published', `${publish.measured_hertz === null ? '…' : hertz(publish.measured_hertz)} of ${hertz(publish.configured_hertz)}`],
    ['Missed samples', String(publish.missed)],
    ['Storage', `${storage.state}, ${bytes(storage.size_bytes)} of ${bytes(storage.max_bytes)}`],
    ['Temperature sensor', sensor?.sensor ?? 'none', sensor?.reason ?? ''],
    ['ROS 2', ros.problem === null ? ros.transport : `${ros.transport}, problem`, ros.problem ?? ros.reason],
    ...(ros.observing || !ros.observers?.length ? [] : [['Other nodes', `shown by ${ros.observers.join(', ')}`] as const]),
  ];
  return (
    <footer class="foot">
      <dl>
        {facts.map(([term, fact, title]) => (
          <div key={term} title={title}>
            <dt>{term}</dt>
            <dd>{fact}</dd>
          </div>
        ))}
      </dl>
    </footer>
  );
}

/** Whole minutes once there is one: a second that ticks in the corner of the eye tells nothing. */
function coarse(seconds: number): number {
  return seconds < 60 ? seconds : Math.floor(seconds / 60) * 60;
}
