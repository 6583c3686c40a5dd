import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import t from 'tap';
import { Intake, readingOf } from './network.ts';

const SOURCE = { address: '10.0.0.2', port: 7411 };
const turn = (): Promise<void> => new Promise((later) => setImmediate(later));

t.test('datagrams are handled at once, a flood over several turns of the event loop, in order', async (t) => {
  let ms = 0;
  const handled: number[] = [];
  const intake = new Intake(
    ([number = 0, takesMs = 0]) => {
      ms += takesMs;
      handled.push(number);
    },
    () => ms,
  );
  const take = (number: number, takesMs: number): boolean => intake.take(Buffer.from([number, takesMs]), SOURCE, false);
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
  const intake = new Intake(
    () => {
      ms += 20;
      handled += 1;
    },
    () => ms,
  );
  const take = (octets: number): boolean => intake.take(Buffer.alloc(octets), SOURCE, false);
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
  const handled: string[] = [];
  const intake = new Intake((datagram) => {
    if (datagram.length === 0) throw new Error('no');
    handled.push(String(datagram));
  });
  t.throws(() => intake.take(Buffer.alloc(0), SOURCE, false), /no/);
  await turn();
  intake.take(Buffer.from('another'), SOURCE, false);
  t.same(handled, ['another']);
});

t.test('many datagrams are read in batches', async (t) => {
  let ms = 1000;
  const calls: string[] = [];
  let onStart = (): void => undefined;
  const intake = new Intake(
    () => undefined,
    () => ms,
  );
  t.teardown(() => intake.close());
  intake.addReading({
    recvStart: () => {
      calls.push('start');
      onStart();
    },
    recvStop: () => calls.push('stop'),
  });
  const take = async (count: number): Promise<string[]> => {
    for (let n = 0; n < count; n += 1) intake.take(Buffer.alloc(100), SOURCE, false);
    await turn();
    return calls.splice(0);
  };
  const started = (): Promise<void> => new Promise((resolve) => (onStart = resolve));
  for (let n = 0; n < 100; n += 1) {
    ms += 25;
    t.same(await take(1), [], 'not at 40 a second');
  }
  ms += 1000;
  t.same(await take(1), []);
  let reads = started();
  for (let n = 0; n < 20; n += 1) await take(10);
  ms += 1000;
  t.same(await take(1), ['stop'], 'at 200 a second reading is suspended after a turn');
  t.same(await take(1), [], 'once');
  await reads;
  t.same(calls.splice(0), ['start'], 'and continues');
  t.same(await take(32), [], 'not suspended while more may wait');
  reads = started();
  t.same(await take(31), ['stop']);
  await reads;
  calls.splice(0);
  ms += 10_000;
  t.same(await take(1), [], 'the rate has fallen');
  for (let n = 0; n < 20; n += 1) await take(10);
  ms += 1000;
  t.same(await take(1), ['stop']);
  intake.close();
  t.same(await take(1), [], 'not after the end');
});

t.test('reading of a socket can be suspended with this version of Node', async (t) => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  t.teardown(() => socket.close());
  await once(socket, 'listening');
  const reading = readingOf(socket);
  if (!reading) return t.fail('the handle was not found');
  const messages: string[] = [];
  socket.on('message', (datagram) => messages.push(String(datagram)));
  const sender = createSocket('udp4');
  t.teardown(() => sender.close());
  const send = (text: string): Promise<unknown> => new Promise((resolve) => sender.send(text, socket.address().port, '127.0.0.1', resolve));
  reading.recvStop();
  await send('a');
  for (let n = 0; n < 10; n += 1) await turn();
  t.same(messages, []);
  const received = once(socket, 'message');
  reading.recvStart();
  await received;
  t.same(messages, ['a'], 'nothing is lost');
});
