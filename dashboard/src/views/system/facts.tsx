import type { VNode } from 'preact';
import { bytes, duration, hertz } from '../../format.ts';
import type { StatusDocument } from '../../types.ts';
import { words } from '../../words/words.ts';

/** Version, rates, storage and transport of the service. `statusAgeSeconds`: added to the uptime that /status reported. */
export function Facts({ status, statusAgeSeconds }: { status: StatusDocument; statusAgeSeconds: number }): VNode {
  const { publish, ros, storage, temperature_sensor: sensor } = status;
  const { system } = words;
  const facts: readonly (readonly [string, string, string?])[] = [
    [system.version, status.version],
    [system.runningFor, duration(roundToMinutes(status.uptime_seconds + statusAgeSeconds))],
    [
      system.published,
      system.publishedOf(publish.measured_hertz === null ? '…' : hertz(publish.measured_hertz), hertz(publish.configured_hertz)),
    ],
    [system.missedSamples, String(publish.missed)],
    [system.storage, system.storageOf(storage.state, bytes(storage.size_bytes), bytes(storage.max_bytes))],
    [system.sensor, sensor?.sensor ?? system.none, sensor?.reason ?? ''],
    [system.ros, ros.problem === null ? ros.transport : system.withProblem(ros.transport), ros.problem ?? ros.reason],
    ...(ros.observing || !ros.observers?.length ? [] : [[system.otherNodes, system.shownBy(ros.observers.join(', '))] as const]),
  ];
  return (
    <dl class="facts">
      {facts.map(([term, fact, title]) => (
        <div key={term} title={title}>
          <dt>{term}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Rounds down to whole minutes from one minute on, so that the text does not change every second. */
function roundToMinutes(seconds: number): number {
  return seconds < 60 ? seconds : Math.floor(seconds / 60) * 60;
}
