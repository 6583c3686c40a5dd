import type { VNode } from 'preact';
import { fleetText, type Tile } from './fleet.ts';
import { duration, minuteOfDay } from './format.ts';
import { STATUS_ICONS } from './icons.tsx';
import { METRICS, type Metric } from './types.ts';

interface NodesProps {
  readonly tiles: readonly Tile[];
  /** Name of the node whose measurements are shown. */
  readonly shown: string | null;
  /** Whether the data is the last known, not current. */
  readonly isOutdated: boolean;
  readonly onNode: (node: string) => void;
}

const SHORT_LABELS: Readonly<Record<Metric, { name: string; unit: string }>> = {
  cpu_percent: { name: 'CPU', unit: '%' },
  memory_percent: { name: 'Mem', unit: '%' },
  disk_percent: { name: 'Disk', unit: '%' },
  temperature: { name: 'Temp', unit: '°C' },
};

/** Overview of all nodes, with the shown one highlighted. Hidden if there is only the local node. */
export function Nodes({ tiles, shown, isOutdated, onNode }: NodesProps): VNode | null {
  if (tiles.length < 2) return null;
  return (
    <nav class="nodes" aria-labelledby="nodes-title">
      <h2 id="nodes-title">{fleetText(isOutdated ? tiles.map((tile) => ({ ...tile, status: 'UNKNOWN' as const })) : tiles)}</h2>
      <ul>
        {tiles.map((tile) => (
          <li key={tile.node}>
            <NodeTile tile={tile} isShown={tile.node === shown} isOutdated={isOutdated} onNode={onNode} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface NodeTileProps {
  readonly tile: Tile;
  readonly isShown: boolean;
  readonly isOutdated: boolean;
  readonly onNode: (node: string) => void;
}

function NodeTile({ tile, isShown, isOutdated, onNode }: NodeTileProps): VNode {
  const { isStale, node, readings } = tile;
  const status = isOutdated ? 'UNKNOWN' : tile.status;
  const Icon = STATUS_ICONS[status];
  return (
    <button
      type="button"
      class={isStale || isOutdated ? 'tile stale' : 'tile'}
      aria-current={isShown ? 'true' : undefined}
      onClick={() => onNode(node)}
    >
      <span class="name" title={node}>
        {node}
      </span>
      <span class={`state ${status.toLowerCase()}`}>
        <Icon />
        {status}
      </span>
      <span class="readings">
        {METRICS.map((metric) => (
          <span key={metric} class="reading">
            <span class="what">{SHORT_LABELS[metric].name}</span> {formatReading(readings?.[metric] ?? null, SHORT_LABELS[metric].unit)}
          </span>
        ))}
      </span>
      <span class="age">{formatAge(tile)}</span>
    </button>
  );
}

function formatReading(reading: number | null, unit: string): string {
  return reading === null ? '–' : `${reading.toFixed(0)} ${unit}`;
}

/** The age in seconds is shown only for stale nodes; for the others a running count would distract. */
function formatAge({ ageSeconds, isLocal, isStale, leftMs }: Tile): string {
  if (isLocal && !isStale) return 'here';
  if (leftMs !== null) return `left at ${minuteOfDay(leftMs, Date.now())}`;
  if (ageSeconds === null) return 'no data yet';
  return isStale ? `${duration(ageSeconds)} ago` : 'live';
}
