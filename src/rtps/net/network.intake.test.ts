import t from 'tap';
import { Intake } from './network.ts';

const turn = (): Promise<void> => new Promise((later) => setImmediate(later));

t.test('datagrams are handled at once, a flood over several turns of the event loop, in order', async (t) => {
  let ms = 0;
  const handled: number[] = [];
  const intake = new Intake(() => ms);
  const take = (number: number, takesMs: number): boolean =>
    intake.take(100, () => {
      ms += takesMs;
      handled.push(number);
    });
  take(0, 1);
  t.same(handled, [0], 'at once');
  await turn();
  for (let number = 1; number <= 50; number += 1) take(number, 1);
  t.equal(handled.length, 11, 'for ten milliseconds');
  take(51, 1);
  await turn();
  t.equal(handled.length, 21, 'and as many in the next turn');
  for (let turns = 0; turns < 10; turns += 1) await turn();
  t.same(
    handled,
    Array.from({ length: 52 }, (_, number) => number),
  );
  take(52, 100);
  t.equal(handled.length, 53, 'afterwards at once again');
});

t.test('the queue is bounded, and empty once it is closed', async (t) => {
  let ms = 0;
  let handled = 0;
  const intake = new Intake(() => ms);
  const take = (octets: number): boolean =>
    intake.take(octets, () => {
      ms += 20;
      handled += 1;
    });
  take(1);
  let [few, large] = [0, 0];
  while (take(100)) few += 1;
  t.ok(few >= 512 && few <= 4096, `${few} small ones`);
  intake.close();
  await turn();
  t.equal(handled, 1);
  take(1);
  take(1);
  while (take(65_507)) large += 1;
  t.ok(large * 65_507 <= 4 * 1024 * 1024 && large > 50, `${large} large ones`);
  intake.close();
});

t.test('a handler that throws does not affect others', async (t) => {
  const intake = new Intake();
  t.throws(
    () =>
      intake.take(1, () => {
        throw new Error('no');
      }),
    /no/,
  );
  let handled = false;
  await turn();
  intake.take(1, () => {
    handled = true;
  });
  t.ok(handled);
});
