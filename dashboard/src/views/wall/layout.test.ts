import t from 'tap';
import type { Tile } from '../../model/fleet.ts';
import type { Status } from '../../types.ts';
import { gapPx, inWallOrder, layoutOf, tileTextPx } from './layout.ts';

const tile = (node: string, status: Status, leftMs: number | null = null): Tile => ({
  node,
  isLocal: false,
  status,
  readings: null,
  ageSeconds: 1,
  isStale: status === 'UNKNOWN',
  leftMs,
});

t.test('the tiles fill the screen in as many columns as make them largest', async (t) => {
  t.same(layoutOf(1, 1920, 1000), { columns: 1, isFitted: true });
  t.same(layoutOf(2, 1920, 1000), { columns: 2, isFitted: true });
  t.same(layoutOf(4, 1920, 1000), { columns: 2, isFitted: true });
  t.same(layoutOf(12, 1920, 1000), { columns: 4, isFitted: true });
  t.same(layoutOf(30, 1920, 1000), { columns: 6, isFitted: true });
  t.same(layoutOf(30, 3840, 2000), { columns: 6, isFitted: true }, 'the same on a larger screen');
});

t.test('on a small screen, and with many nodes, the wall scrolls', async (t) => {
  t.same(layoutOf(12, 360, 600), { columns: 2, isFitted: true });
  t.same(layoutOf(30, 360, 600), { columns: 2, isFitted: false });
  t.same(layoutOf(300, 1920, 1000), { columns: 12, isFitted: false });
  t.same(layoutOf(300, 100, 600), { columns: 1, isFitted: false }, 'at least one column');
});

t.test('tiles stay readable with any number of nodes and on any screen', async (t) => {
  for (const count of [1, 2, 3, 5, 8, 13, 30, 40, 41, 300]) {
    for (const [width, height] of [
      [320, 480],
      [800, 600],
      [1366, 700],
      [1920, 1000],
      [3840, 2100],
    ] as const) {
      const { columns, isFitted } = layoutOf(count, width, height);
      t.ok(width / columns >= 150, `${count} on ${width} × ${height}: ${columns} columns`);
      if (isFitted) t.ok(height / Math.ceil(count / columns) >= 96);
    }
  }
});

t.test('the worst nodes are first, and nodes that left are last', async (t) => {
  const names = inWallOrder([
    tile('robot-10', 'OK'),
    tile('robot-2', 'OK'),
    tile('robot-3', 'WARNING'),
    tile('robot-4', 'UNKNOWN'),
    tile('robot-5', 'UNKNOWN', 1),
    tile('robot-6', 'CRITICAL'),
    tile('robot-7', 'ERROR'),
  ]).map(({ node }) => node);
  t.same(names, ['robot-6', 'robot-7', 'robot-4', 'robot-3', 'robot-2', 'robot-10', 'robot-5']);
});

t.test('text grows with the tile and fits into it', async (t) => {
  for (const count of [1, 2, 6, 12, 30, 40]) {
    for (const [width, height] of [
      [1366, 700],
      [1920, 1000],
      [3840, 2100],
    ] as const) {
      const { columns, isFitted } = layoutOf(count, width, height);
      if (!isFitted) continue;
      const text = tileTextPx(count, columns, width, height);
      const rows = Math.ceil(count / columns);
      t.ok(
        text * 10 <= width / columns && (text / 0.18) * rows + gapPx(width, height) * (rows - 1) <= height + 0.001,
        `${count} on ${width}`,
      );
    }
  }
  t.ok(tileTextPx(6, 3, 1920, 1000) > tileTextPx(30, 6, 1920, 1000));
});
