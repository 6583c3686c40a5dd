import './style.css';
import { Component, type RefObject, type VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatted, minuteOfDay } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { type Entry, worstOpenByNode } from '../../model/alert-book.ts';
import { ageText, fleetText, type Tile } from '../../model/fleet.ts';
import { Grid, STATUS_ICONS } from '../../page/icons.tsx';
import { hrefOf } from '../../page/route.ts';
import { metricName } from '../../text.ts';
import { METRICS, type Metric, type Status } from '../../types.ts';
import type { View, ViewProps } from '../view.ts';
import { useFullScreen } from './full-screen.ts';
import { gapPx, inWallOrder, layoutOf, tileTextPx } from './layout.ts';

/** All nodes as tiles, the worst first, to be read from across the room. */
function Wall({ link, nowMs, state, tiles }: ViewProps): VNode {
  const wall = useRef<HTMLElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const { isDimmed, isFull, problem, toggleDim, toggleFull } = useFullScreen(wall);
  const size = useSize(list);
  const isGone = link.state === 'gone';
  const shown = inWallOrder(isGone ? tiles.map((tile) => ({ ...tile, status: 'UNKNOWN' as const })) : tiles);
  const { columns, isFitted } = layoutOf(shown.length, size.width, size.height);
  const alerts = worstOpenByNode(state.book);
  const text = messages.wall;
  return (
    <main ref={wall} class={`wall${isFull ? ' full' : ''}${isDimmed ? ' dimmed' : ''}`}>
      <div class="bar">
        <h2 aria-live="polite">{isGone ? link.first : state.status === null ? messages.shell.loading : fleetText(shown)}</h2>
        <div class="tools">
          {isFull && <p class="muted">{link.second}</p>}
          {isFull && (
            <button type="button" aria-pressed={isDimmed} onClick={toggleDim}>
              {text.dim}
            </button>
          )}
          <button type="button" aria-pressed={isFull} onClick={toggleFull}>
            {isFull ? text.leaveFullScreen : text.fullScreen}
          </button>
        </div>
      </div>
      {isFull && problem && <p class="notice">{problem}</p>}
      <ul
        ref={list}
        class={isFitted ? 'fitted' : 'scrolled'}
        style={{
          '--columns': columns,
          '--tile': isFitted ? `${tileTextPx(shown.length, columns, size.width, size.height)}px` : undefined,
          gap: `${gapPx(size.width, size.height)}px`,
          height: isFitted ? `${size.height}px` : undefined,
        }}
      >
        {shown.map((tile) => (
          <li key={tile.node}>
            <NodeTile {...nodeTileProps(tile, alerts.get(tile.node), isGone, nowMs)} />
          </li>
        ))}
      </ul>
    </main>
  );
}

/** What a tile shows: primitive values only, so that the tile can compare them. The texts of the readings are named as their metrics. */
interface NodeTileProps extends Readonly<Record<Metric, string>> {
  readonly node: string;
  readonly status: Status;
  /** Whether the node has left the graph. */
  readonly hasLeft: boolean;
  readonly isStale: boolean;
  /** The metric of the worst open alert of the node, and how many more it has; empty: none. */
  readonly cause: string;
  readonly since: string;
  readonly age: string;
}

function nodeTileProps(
  tile: Tile,
  worst: { readonly entry: Entry; readonly count: number } | undefined,
  isOutdated: boolean,
  nowMs: number,
): NodeTileProps {
  const { isStale, leftMs, node, readings } = tile;
  const reading = (metric: Metric): string => readingText(readings?.[metric] ?? null, messages.metrics[metric].unit);
  const hasLeft = leftMs !== null && !isOutdated;
  // A stale node shows its age instead.
  const isCauseShown = worst !== undefined && !isOutdated && !hasLeft && worst.entry.alert.metric !== 'health_status';
  return {
    node,
    status: isOutdated ? 'UNKNOWN' : tile.status,
    hasLeft,
    isStale: isStale || isOutdated,
    cause: isCauseShown ? `${metricName(worst.entry.alert.metric)}${worst.count > 1 ? ` +${worst.count - 1}` : ''}` : '',
    since: isCauseShown ? messages.alerts.since(minuteOfDay(worst.entry.sinceMs, nowMs)) : '',
    age: ageText(tile, nowMs),
    cpu_percent: reading('cpu_percent'),
    memory_percent: reading('memory_percent'),
    disk_percent: reading('disk_percent'),
    temperature: reading('temperature'),
  };
}

/**
 * The wall is rendered several times a second, while a tile changes once a second at most. The tile decides that itself: vnodes kept from
 * one rendering to the next, as by `useMemo`, refer to the tree of their rendering, and would keep it in memory.
 */
class NodeTile extends Component<NodeTileProps> {
  override shouldComponentUpdate(next: NodeTileProps): boolean {
    return (Object.keys(next) as (keyof NodeTileProps)[]).some((name) => next[name] !== this.props[name]);
  }

  override render({ age, cause, hasLeft, isStale, node, since, status, ...readings }: NodeTileProps): VNode {
    const Icon = STATUS_ICONS[status];
    const { meaning, word } = messages.status[status];
    const kind = `${hasLeft ? 'left' : status.toLowerCase()}${isStale ? ' stale' : ''}`;
    return (
      <a class={`tile ${kind}`} href={hrefOf({ view: 'nodes', item: node })} title={meaning}>
        <span class="name">{node}</span>
        <span class="word">
          <Icon />
          {hasLeft ? messages.nodes.left : word}
        </span>
        {cause !== '' && (
          <span class="cause">
            <span>{cause}</span> <span>{since}</span>
          </span>
        )}
        <span class="readings">
          {METRICS.map((metric) => (
            <span key={metric} class="reading">
              <span class="what">{messages.metrics[metric].short}</span> {readings[metric]}
            </span>
          ))}
        </span>
        <span class="age">{age}</span>
      </a>
    );
  }
}

function readingText(reading: number | null, unit: string): string {
  return reading === null ? '–' : `${formatted(reading, 0, 0)} ${unit}`;
}

/** The width of an element, and the height from its top to the end of the window, in CSS pixels. */
function useSize(element: RefObject<HTMLElement | null>): { width: number; height: number } {
  const [size, setSize] = useState({ width: innerWidth, height: innerHeight });
  useLayoutEffect(() => {
    const measured = element.current as HTMLElement;
    const measure = (): void => {
      const { top, width } = measured.getBoundingClientRect();
      const margin = Number.parseFloat(getComputedStyle(measured.parentElement as Element).paddingBottom);
      const next = { width, height: Math.max(0, Math.floor(innerHeight - top - scrollY - margin)) };
      setSize((before) => (before.width === next.width && before.height === next.height ? before : next));
    };
    // The elements above it change its top: the header wraps, a notice appears.
    const observer = new ResizeObserver(measure);
    for (const element of [measured, measured.previousElementSibling, document.querySelector('header')])
      if (element) observer.observe(element);
    addEventListener('resize', measure);
    measure();
    return () => {
      observer.disconnect();
      removeEventListener('resize', measure);
    };
  }, []);
  return size;
}

const view: View = { name: 'wall', order: 1, Icon: Grid, label: () => messages.wall.title, Component: Wall };
export default view;
