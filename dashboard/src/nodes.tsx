import type { VNode } from 'preact';
import { fleetText, type Tile } from './fleet.ts';
import { duration, minuteOfDay } from './format.ts';
import { STATUS_ICONS } from './icons.tsx';
import { METRICS, type Metric } from './types.ts';

interface NodesProps {
  readonly tiles: readonly Tile[];
  /** The one whose measurements are shown. */
  readonly shown: string | null;
  /** What is shown is the last that was known. */
  readonly isLast: boolean;
  readonly onNode: (node: string) => void;
}

const SHORT: Readonly<Record<Metric, { name: string; unit: string }>> = {
  cpu_percent: { name: 'CPU', unit: '%' },
  memory_percent: { name: 'Mem', unit: '%' },
  disk_percent: { name: 'Disk', unit: '%' },
  temperature: { name: 'Temp', unit: '°C' },
};

/** Every node that this machine hears, at a glance; one is chosen. A machine that is alone has none of it. */
export function Nodes({ tiles, shown, isLast, onNode }: NodesProps): VNode | null {
  if (tiles.length < 2) return null;
  return (
    <nav class="nodes" aria-labelledby="nodes-title">
      <h2 id="nodes-title">{fleetText(isLast ? tiles.map((tile) => ({ ...tile, status: 'UNKNOWN' as const })) : tiles)}</h2>
      <ul>
        {tiles.map((tile) => (
          <li key={tile.node}>
            <NodeTile tile={tile} isShown={tile.node === shown} isLast={isLast} onNode={onNode} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface NodeTileProps {
  readonly tile: Tile;
  readonly isShown: boolean;
  readonly isLast: boolean;
  readonly onNode: (node: string) => void;
}

function NodeTile({ tile, isShown, isLast, onNode }: NodeTileProps): VNode {
  const { isStale, node, readings } = tile;
  const status = isLast ? 'UNKNOWN' : tile.status;
  const Icon = STATUS_ICONS[status];
  return (
    <button
      type="button"
      class={isStale || isLast ? 'tile stale' : 'tile'}
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
            <span class="what">{SHORT[metric].name}</span> {figure(readings?.[metric] ?? null, SHORT[metric].unit)}
          </span>
        ))}
      </span>
      <span class="age">{age(tile)}</span>
    </button>
  );
}

function figure(reading: number | null, unit: string): string {
  return reading === null ? '–' : `${reading.toFixed(0)} ${unit}`;
}

/** Seconds that tick tell nothing as long as all is well. */
function age({ ageSeconds, isLocal, isStale, leftMs }: Tile): string {
  if (isLocal && !isStale) return 'here';
  if (leftMs !== null) return `left at ${minuteOfDay(leftMs, Date.now())}`;
  if (ageSeconds === null) return 'not heard yet';
  return isStale ? `${duration(ageSeconds)} ago` : 'live';
}
