import t from 'tap';
import type { Tile } from '../../model/fleet.ts';
import type { Status } from '../../types.ts';
import { gapPx, inWallOrder, layoutOf, nameTextPx, rowPx } from './layout.ts';

const tile = (node: string, status: Status, leftMs: number | null = null): Tile => ({
  node,
  isLocal: false,
  status,
  readings: null,
  ageSeconds: 1,
  isStale: status === 'UNKNOWN',
  leftMs,
});

const REM_PX = 16;
const shape = (count: number, width: number, height: number, remPx = REM_PX): { columns: number; isFitted: boolean } => {
  const { columns, isFitted } = layoutOf(count, width, height, remPx);
  return { columns, isFitted };
};

t.test('the tiles fill the screen in as many columns as make them largest', async (t) => {
  t.same(shape(1, 1920, 1000), { columns: 1, isFitted: true });
  t.same(shape(2, 1920, 1000), { columns: 2, isFitted: true });
  t.same(shape(4, 1920, 1000), { columns: 2, isFitted: true });
  t.same(shape(12, 1920, 1000), { columns: 4, isFitted: true });
  t.same(shape(30, 1920, 1000), { columns: 6, isFitted: true });
  t.same(shape(30, 3840, 2000), { columns: 6, isFitted: true }, 'the same on a larger screen');
  t.same(shape(100, 3840, 2000).isFitted, true, 'as many as are readable');
});

t.test('on a small screen, and with many nodes, the wall scrolls', async (t) => {
  t.same(shape(12, 360, 600), { columns: 2, isFitted: true });
  t.same(shape(30, 360, 600), { columns: 2, isFitted: false });
  t.same(shape(300, 1920, 1000, 18), { columns: 10, isFitted: false });
  t.same(shape(300, 100, 600), { columns: 1, isFitted: false }, 'at least one column');
});

t.test('tiles are as large as their text needs, with any number of nodes and on any screen', async (t) => {
  for (const count of [1, 2, 3, 5, 8, 13, 30, 40, 41, 300]) {
    for (const [width, height, remPx] of [
      [320, 480, 16],
      [800, 600, 16],
      [1366, 700, 16],
      [1920, 1000, 18.56],
      [3840, 2100, 25.6],
    ] as const) {
      const { columns, isFitted, textPx } = layoutOf(count, width, height, remPx);
      const [gap, rows] = [gapPx(width, height), Math.ceil(count / columns)];
      t.ok(textPx >= remPx, `${count} on ${width} × ${height}: ${columns} columns`);
      t.ok(textPx * 10 * columns + gap * (columns - 1) <= width + 0.001);
      if (isFitted) t.ok(rowPx(textPx) * rows + gap * (rows - 1) <= height + 0.001);
    }
  }
});

t.test('names are smaller if the longest one would not fit, but readable', async (t) => {
  t.equal(nameTextPx(8, 40, 16), 38);
  t.ok(nameTextPx(25, 40, 16) < 22);
  t.equal(nameTextPx(250, 40, 16), 0.68 * 16);
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
