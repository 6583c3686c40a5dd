import { worstFirst } from '../../../../src/core/alerts/alert.ts';
import { compareNames, type Tile } from '../../model/fleet.ts';

/** Up to this many nodes share the screen, without scrolling. */
export const MAX_FITTED = 40;
/** Width by height at which a tile's text is largest. */
const ASPECT = 1.9;
/** Narrower tiles cannot be read; the wall scrolls instead. */
const MIN_TILE_PX = { width: 150, height: 96 };

export interface Layout {
  readonly columns: number;
  /** Whether all tiles share the height of the screen; otherwise each has a height of its own and the wall scrolls. */
  readonly isFitted: boolean;
}

/** The number of columns with which the tiles are largest in this area, in CSS pixels. */
export function layoutOf(count: number, width: number, height: number): Layout {
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const size = Math.min(width / columns / ASPECT, height / Math.ceil(count / columns));
    if (size > best.size) best = { columns, size };
  }
  const { columns } = best;
  const rows = Math.ceil(count / columns);
  const isFitted = count <= MAX_FITTED && width / columns >= MIN_TILE_PX.width && height / rows >= MIN_TILE_PX.height;
  return isFitted ? { columns, isFitted } : { columns: Math.max(1, Math.floor(width / MIN_TILE_PX.width)), isFitted };
}

/** Space between tiles in CSS pixels. */
export function gapPx(width: number, height: number): number {
  return Math.min(16, Math.max(6, Math.min(width, height) / 120));
}

/**
 * Size of the name in a tile that shares the screen, in CSS pixels; everything in the tile is sized by it. Container units would give the
 * same result, but then each change of a value would cost a style calculation per tile.
 */
export function tileTextPx(count: number, columns: number, width: number, height: number): number {
  const gap = gapPx(width, height);
  const rows = Math.ceil(count / columns);
  return Math.min((0.1 * (width - gap * (columns - 1))) / columns, (0.18 * (height - gap * (rows - 1))) / rows);
}

/** The worst first, nodes that have left last; then by name, so that tiles change places only when a status changes. */
export function inWallOrder(tiles: readonly Tile[]): Tile[] {
  const hasLeft = ({ leftMs }: Tile): number => Number(leftMs !== null);
  const byStatus = (a: Tile, b: Tile): number => hasLeft(a) - hasLeft(b) || (hasLeft(a) ? 0 : worstFirst(a.status, b.status));
  return tiles.toSorted((a, b) => byStatus(a, b) || compareNames(a.node, b.node));
}
