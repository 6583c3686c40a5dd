import { worstFirst } from '../../../../src/core/alerts/alert.ts';
import { compareNames, type Tile } from '../../model/fleet.ts';

/**
 * A tile's width and height in units of its text size: everything in a tile is sized by its text, and fits into this area. Container units
 * would give the same result, but then each change of a value would cost a style calculation per tile.
 */
const TILE = { width: 10, height: 5.6 };
/** Inner width of a tile in units of its text size. */
const INNER_WIDTH = 9.2;
/** The name is this much larger than the text, unless it would not fit. */
const NAME = 0.95;
/** Mean width of a bold letter in units of its size; that of DejaVu Sans, the widest of the common fonts. */
const LETTER = 0.68;
/** The smallest size of names, in rem. */
const MIN_NAME = 0.68;

export interface Layout {
  readonly columns: number;
  /** Size of the tiles' text in CSS pixels. */
  readonly textPx: number;
  /** Whether all tiles share the height of the screen; otherwise the wall scrolls. */
  readonly isFitted: boolean;
}

/**
 * The columns with which the tiles are largest in an area; if their text would be smaller than `remPx`, the size of the page's text, as
 * many columns as are readable. All lengths in CSS pixels.
 */
export function layoutOf(count: number, width: number, height: number, remPx: number): Layout {
  const gap = gapPx(width, height);
  const lengthOf = (total: number, parts: number): number => (total - gap * (parts - 1)) / parts;
  let best = { columns: 1, textPx: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const textPx = Math.min(lengthOf(width, columns) / TILE.width, lengthOf(height, rows) / TILE.height);
    if (textPx > best.textPx) best = { columns, textPx };
  }
  if (best.textPx >= remPx) return { ...best, isFitted: true };
  const columns = Math.max(1, Math.floor((width + gap) / (TILE.width * remPx + gap)));
  return { columns, textPx: lengthOf(width, columns) / TILE.width, isFitted: false };
}

/** Size of the names in CSS pixels: one for all of them, so that the longest, of `letters`, fits if that is readable. */
export function nameTextPx(letters: number, textPx: number, remPx: number): number {
  return Math.max(MIN_NAME * remPx, Math.min(NAME, INNER_WIDTH / (LETTER * letters)) * textPx);
}

/** Height of a tile of a wall that scrolls, in CSS pixels. */
export function rowPx(textPx: number): number {
  return textPx * TILE.height;
}

/** Space between tiles in CSS pixels. */
export function gapPx(width: number, height: number): number {
  return Math.min(16, Math.max(6, Math.min(width, height) / 120));
}

/** The worst first, nodes that have left last; then by name, so that tiles change places only when a status changes. */
export function inWallOrder(tiles: readonly Tile[]): Tile[] {
  const hasLeft = ({ leftMs }: Tile): number => Number(leftMs !== null);
  const byStatus = (a: Tile, b: Tile): number => hasLeft(a) - hasLeft(b) || (hasLeft(a) ? 0 : worstFirst(a.status, b.status));
  return tiles.toSorted((a, b) => byStatus(a, b) || compareNames(a.node, b.node));
}
