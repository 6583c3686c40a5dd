import t from 'tap';
import { until } from '../../testkit/wait.ts';
import { PIECE_BYTES } from './context.ts';
import { RenderCache } from './render-cache.ts';

const LARGE = 'x'.repeat(PIECE_BYTES + 1);

t.test('a large body is rendered at most once a second and then released', async (t) => {
  let renders = 0;
  const rendered = new RenderCache(async () => `${LARGE}${++renders}`);
  const bodies = await Promise.all(Array.from({ length: 20 }, () => rendered.get()));
  bodies.push(await rendered.get());
  t.equal(new Set(bodies).size, 1, 'it is in memory once');
  t.equal(renders, 1);
  await until('the next second', async () => (await rendered.get()) !== bodies[0]);
  t.equal(renders, 2);
});

t.test('a small body is rendered for each request', async (t) => {
  let renders = 0;
  const rendered = new RenderCache(async () => `${++renders}`);
  t.same((await Promise.all([rendered.get(), rendered.get()])).map(String), ['1', '1'], 'while it is being rendered, for all who wait');
  t.equal(String(await rendered.get()), '2');
});

t.test('after a failure the next request renders again', async (t) => {
  let renders = 0;
  const rendered = new RenderCache(async () => {
    renders += 1;
    if (renders === 1) throw new Error('no');
    return LARGE;
  });
  const [first, second] = await Promise.allSettled([rendered.get(), rendered.get()]);
  t.match([first, second], [{ status: 'rejected' }, { status: 'rejected' }]);
  t.equal(String(await rendered.get()), LARGE);
});
