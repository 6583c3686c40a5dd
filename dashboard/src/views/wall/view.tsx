import './style.css';
import type { VNode } from 'preact';
import { ageText, fleetText, type Tile } from '../../fleet.ts';
import { formatted } from '../../format.ts';
import { Grid, STATUS_ICONS } from '../../icons.tsx';
import { hrefOf } from '../../route.ts';
import { METRICS } from '../../types.ts';
import { words } from '../../words/words.ts';
import type { View, ViewProps } from '../view.ts';

/** All nodes as tiles, the worst first. */
function Wall({ link, nowMs, tiles }: ViewProps): VNode {
  const isGone = link.state === 'gone';
  return (
    <main class="wall">
      <h2>{fleetText(isGone ? tiles.map((tile) => ({ ...tile, status: 'UNKNOWN' as const })) : tiles)}</h2>
      <ul>
        {tiles.map((tile) => (
          <li key={tile.node}>
            <NodeTile tile={tile} isOutdated={isGone} nowMs={nowMs} />
          </li>
        ))}
      </ul>
    </main>
  );
}

function NodeTile({ tile, isOutdated, nowMs }: { tile: Tile; isOutdated: boolean; nowMs: number }): VNode {
  const { isStale, node, readings } = tile;
  const status = isOutdated ? 'UNKNOWN' : tile.status;
  const Icon = STATUS_ICONS[status];
  return (
    <a class={isStale || isOutdated ? 'tile stale' : 'tile'} href={hrefOf({ view: 'nodes', item: node })}>
      <span class="name" title={node}>
        {node}
      </span>
      <span class={`state ${status.toLowerCase()}`}>
        <Icon />
        {words.status[status].word}
      </span>
      <span class="readings">
        {METRICS.map((metric) => (
          <span key={metric} class="reading">
            <span class="what">{words.metrics[metric].short}</span> {readingText(readings?.[metric] ?? null, words.metrics[metric].unit)}
          </span>
        ))}
      </span>
      <span class="age">{ageText(tile, nowMs)}</span>
    </a>
  );
}

function readingText(reading: number | null, unit: string): string {
  return reading === null ? '–' : `${formatted(reading, 0, 0)} ${unit}`;
}

const view: View = { name: 'wall', order: 1, Icon: Grid, label: () => words.wall.title, Component: Wall };
export default view;
