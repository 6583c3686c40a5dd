import type { VNode } from 'preact';
import { bytes, duration, hertz } from './format.ts';
import type { StatusDocument } from './types.ts';

/** Version, rates, storage and transport of the service. `statusAgeSeconds`: added to the uptime that /status reported. */
export function Footer({ status, statusAgeSeconds }: { status: StatusDocument | null; statusAgeSeconds: number }): VNode {
  if (!status) return <footer class="foot" />;
  const { publish, ros, storage, temperature_sensor: sensor } = status;
  const facts: readonly (readonly [string, string, string?])[] = [
    ['Version', status.version],
    ['Running for', duration(roundToMinutes(status.uptime_seconds + statusAgeSeconds))],
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

/** Rounds down to whole minutes from one minute on, so that the footer does not change every second. */
function roundToMinutes(seconds: number): number {
  return seconds < 60 ? seconds : Math.floor(seconds / 60) * 60;
}
