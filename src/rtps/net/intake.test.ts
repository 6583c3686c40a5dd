import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import t from 'tap';
import { Intake } from './intake.ts';
import { readingOf } from './network.ts';

const SOURCE = { address: '10.0.0.2', port: 7411 };
const turn = (): Promise<void> => new Promise((later) => setImmediate(later));

interface Sent {
  /** Last octet of the source address. */
  readonly host?: number;
  readonly isProven?: boolean;
  readonly takesMs?: number;
  readonly octets?: number;
}

/** An intake in virtual time, whose datagrams are numbers. */
function rig() {
  const clock = { ms: 1000 };
  const handled: number[] = [];
  const dropped: string[] = [];
  const intake = new Intake(
    {
      onDatagram: ([number = 0, , takesMs = 0]) => {
        clock.ms += takesMs;
        handled.push(number);
      },
      isFromProven: ([, isProven]) => isProven === 1,
      onDropped: ({ address }) => dropped.push(address),
    },
    () => clock.ms,
  );
  const take = (number: number, { host = 2, isProven = true, takesMs = 1, octets = 3 }: Sent = {}): void => {
    const datagram = Buffer.alloc(octets);
    datagram.set([number, isProven ? 1 : 0, takesMs]);
    intake.take(datagram, { address: `10.0.0.${host}`, port: 7411 }, false);
  };
  /** As after a second with many datagrams, each of which takes no time. */
  const flooded = async (): Promise<void> => {
    for (let n = 0; n < 60; n += 1) take(0, { host: 250, takesMs: 0 });
    await turn();
    handled.length = 0;
  };
  return { clock, handled, dropped, intake, take, flooded };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

t.test('few datagrams are handled at once, over several turns of the event loop if they take long, in order', async (t) => {
  const { handled, intake, take } = rig();
  t.teardown(() => intake.close());
  take(0, { isProven: false });
  t.same(handled, [0], 'at once');
  await turn();
  for (let number = 1; number <= 40; number += 1) take(number);
  t.equal(handled.length, 11, 'for ten milliseconds');
  take(41);
  await turn();
  t.equal(handled.length, 21, 'and as many in the next turn');
  for (let turns = 0; turns < 10; turns += 1) await turn();
  t.same(handled, upTo(42));
  take(42, { takesMs: 100 });
  t.equal(handled.length, 43, 'afterwards at once again');
});

t.test('of many datagrams, those of proven participants are handled before those of others', async (t) => {
  const { handled, intake, take, flooded } = rig();
  t.teardown(() => intake.close());
  await flooded();
  for (const number of [1, 2, 3]) take(number, { host: 3, isProven: false });
  take(4);
  t.same(handled, [4]);
  await turn();
  t.same(handled, [4, 1, 2, 3]);
});

t.test('each address has a share: beyond it datagrams of unproven senders are dropped, others wait', async (t) => {
  const { clock, dropped, handled, intake, take, flooded } = rig();
  t.teardown(() => intake.close());
  await flooded();
  for (let n = 0; n < 10; n += 1) {
    for (let i = 0; i < 200; i += 1) take(100, { host: 3, isProven: false, takesMs: 0 });
    await turn();
  }
  t.ok(handled.length > 500 && handled.length < 1000, `${handled.length} of 2000 within a moment`);
  t.equal(dropped.length, 2000 - handled.length);
  t.same(new Set(dropped), new Set(['10.0.0.3']));
  take(101, { host: 4, isProven: false });
  await turn();
  t.equal(handled.at(-1), 101, 'another address has its own');
  handled.length = 0;
  clock.ms += 1000;
  for (let i = 0; i < 100; i += 1) take(102, { host: 3, isProven: false, takesMs: 0, octets: 15_000 });
  await turn();
  t.equal(handled.length, 10, 'long datagrams cost more');
  handled.length = 0;
  clock.ms += 1000;
  for (let i = 0; i < 1000; i += 1) take(103, { host: 5, takesMs: 0 });
  take(104, { host: 6 });
  t.ok(handled.length < 1000 && handled.at(-1) === 104, 'a proven sender waits');
  await turn();
  t.equal(handled.length, 1001);
});

t.test('unproven senders take a part of the time together', async (t) => {
  const { clock, handled, intake, take, flooded } = rig();
  t.teardown(() => intake.close());
  await flooded();
  const begun = clock.ms;
  for (let number = 0; clock.ms - begun < 10_000; number += 1) {
    take(100, { host: number % 250, isProven: false });
    if (number % 8 === 0) {
      await turn();
      clock.ms += 4;
    }
  }
  t.ok(handled.length > 4000 && handled.length < 6000, `${handled.length} ms of 10 s`);
});

t.test('the queues are bounded, and empty once it is closed', async (t) => {
  for (const octets of [100, 65_507]) {
    const { dropped, handled, intake, take } = rig();
    take(1, { takesMs: 20 });
    let queued = 0;
    for (; dropped.length === 0; queued += 1) take(2, { octets });
    t.ok(queued > 50 && queued <= 2048 && queued * octets <= 5 * 1024 * 1024, `${queued} of ${octets} octets`);
    intake.close();
    await turn();
    t.same(handled, [1]);
  }
});

t.test('a handler that throws does not affect others', async (t) => {
  const handled: string[] = [];
  const intake = new Intake({
    onDatagram: (datagram) => {
      if (datagram.length === 0) throw new Error('no');
      handled.push(String(datagram));
    },
    isFromProven: () => true,
    onDropped: () => undefined,
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
  const intake = new Intake({ onDatagram: () => undefined, isFromProven: () => true, onDropped: () => undefined }, () => ms);
  t.teardown(() => intake.close());
  intake.addReading({
    recvStart: () => {
      calls.push('start');
      onStart();
    },
    recvStop: () => calls.push('stop'),
  });
  const take = async (count: number, octets = 100): Promise<string[]> => {
    for (let n = 0; n < count; n += 1) intake.take(Buffer.alloc(octets), SOURCE, false);
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
  t.same(await take(1, 60_000), [], 'or a large one');
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
