import './style.css';
import { Component, type RefObject, type VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { markLookAlike } from '../../../../src/core/look-alike.ts';
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
import { gapPx, inWallOrder, layoutOf, nameTextPx, rowPx } from './layout.ts';

/** All nodes as tiles, the worst first, to be read from across the room. */
function Wall({ link, nowMs, state, tiles }: ViewProps): VNode {
  const wall = useRef<HTMLElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const { isDimmed, isFull, problem, toggleDim, toggleFull } = useFullScreen(wall);
  const size = useSize(list);
  const isGone = link.state === 'gone';
  const shown = inWallOrder(isGone ? tiles.map((tile) => ({ ...tile, status: 'UNKNOWN' as const })) : tiles);
  const { columns, isFitted, textPx } = layoutOf(shown.length, size.width, size.height, size.remPx);
  const letters = Math.max(1, ...shown.map(({ node }) => markLookAlike(node).length));
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
        style={{
          '--columns': columns,
          '--tile': `${textPx}px`,
          '--name': `${nameTextPx(letters, textPx, size.remPx)}px`,
          gap: `${gapPx(size.width, size.height)}px`,
          gridAutoRows: isFitted ? 'minmax(0, 1fr)' : `${rowPx(textPx)}px`,
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
  /** The metric of the worst open alert of the node, and how many more it has; without an alert, that the values are the last known. */
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
  const { leftMs, node, readings } = tile;
  const reading = (metric: Metric): string => readingText(readings?.[metric] ?? null, messages.metrics[metric].unit);
  const hasLeft = leftMs !== null && !isOutdated;
  const isStale = tile.isStale || isOutdated;
  const hasCause = worst !== undefined && !isOutdated && !hasLeft && worst.entry.alert.metric !== 'health_status';
  const others = hasCause && worst.count > 1 ? ` +${worst.count - 1}` : '';
  const known = isStale && readings ? messages.shell.lastKnown : '';
  // There is room for one time: since when a value is not OK, or how old the values are.
  const isSinceShown = hasCause && !isStale;
  return {
    node,
    status: isOutdated ? 'UNKNOWN' : tile.status,
    hasLeft,
    isStale,
    cause: hasCause ? `${metricName(worst.entry.alert.metric)}${others}` : known,
    since: isSinceShown ? messages.alerts.since(minuteOfDay(worst.entry.sinceMs, nowMs)) : '',
    age: isSinceShown ? '' : ageText({ ...tile, isStale }, nowMs),
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
    const name = markLookAlike(node);
    const kind = `${hasLeft ? 'left' : status.toLowerCase()}${isStale ? ' stale' : ''}`;
    return (
      <a class={`tile ${kind}`} href={hrefOf({ view: 'nodes', item: node })} title={`${name}: ${meaning}`}>
        <span class="name">
          <bdi>{name}</bdi>
        </span>
        <span class="word">
          <Icon />
          {hasLeft ? messages.nodes.left : word}
        </span>
        {cause !== '' && (
          <span class="cause">
            <span>{cause}</span> {since}
          </span>
        )}
        <span class="readings">
          {METRICS.map((metric) => (
            <span key={metric} class="reading">
              <span class="what">{messages.metrics[metric].short}</span> {readings[metric]}
            </span>
          ))}
        </span>
        {age !== '' && <span class="age">{age}</span>}
      </a>
    );
  }
}

function readingText(reading: number | null, unit: string): string {
  return reading === null ? '–' : `${formatted(reading, 0, 0)} ${unit}`;
}

interface Size {
  readonly width: number;
  readonly height: number;
  readonly remPx: number;
}

/** The width of an element, the height from its top to the end of the window, and the size of the page's text, in CSS pixels. */
function useSize(element: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: innerWidth, height: innerHeight, remPx: 16 });
  useLayoutEffect(() => {
    const measured = element.current as HTMLElement;
    const measure = (): void => {
      const wall = measured.parentElement as HTMLElement;
      const { top, width } = measured.getBoundingClientRect();
      const margin = Number.parseFloat(getComputedStyle(wall).paddingBottom);
      const remPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      // The window scrolls, or in full screen the wall.
      const next = { width, height: Math.max(0, Math.floor(innerHeight - top - scrollY - wall.scrollTop - margin)), remPx };
      setSize((before) => (before.width === next.width && before.height === next.height && before.remPx === remPx ? before : next));
    };
    // The elements above it change its top: the header wraps, a notice appears, in full screen there is no header.
    const observer = new ResizeObserver(measure);
    for (const element of [measured, measured.parentElement, measured.previousElementSibling, document.querySelector('header')])
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
