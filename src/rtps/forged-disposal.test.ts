import t, { type Test } from 'tap';
import { endOfInstance } from './discovery/discovery-data.ts';
import { only } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { entity, message, sn, submessage, u16 } from './testing/octets.ts';
import { readerOf, type TestReader, writerOf } from './testing/participants.ts';
import { type Side, type Sides, sides } from './testing/sides.ts';
import { ENTITY, type EntityId, type Guid } from './wire/protocol.ts';

/** The disposal of an endpoint is believed only if the endpoint does not respond any more, and its participant does. */

interface Scene extends Sides {
  readonly own: Side;
  readonly friend: Side;
  /** Removed endpoints of the friend: whether they have left. */
  readonly gone: boolean[];
  /** Injects disposals of all endpoints of the friend, with the numbers that may be the next ones. */
  forge(): void;
  /** Samples arrive in both directions, at reliable and at best-effort readers. */
  works(t: Test): Promise<void>;
}

async function scene(t: Test): Promise<Scene> {
  const all = sides(t);
  const gone: boolean[] = [];
  const own = all.side('10.0.0.1', { onRemoteGone: (_, hasLeft) => gone.push(hasLeft) });
  const friend = all.side('10.0.0.2');
  const effortless = ({ participant }: Side): { reader: TestReader; write: (text: string) => void } => {
    const reader = readerOf(participant, { topic: 'rt/best_effort', reliable: false, transientLocal: false });
    const writer = writerOf(participant, { topic: 'rt/best_effort' });
    return { reader, write: (text) => participant.write(writer, Buffer.from(text)) };
  };
  const [ownEffortless, friendEffortless] = [effortless(own), effortless(friend)];
  /** The next numbers of the friend's discovery writers, which the attacker has guessed. */
  const next = new Map<EntityId, number>();
  all.wire.onFlight = ({ datagram, from, to }) => {
    if (from !== '10.0.0.1' || to !== '10.0.0.2') return;
    for (const { receiver, set } of only('ackNack', [datagram])) next.set(receiver, set.base);
  };
  await own.participant.start();
  await friend.participant.start();
  await all.time.pass(5);
  let samples = 0;
  const { prefix } = friend.participant;
  return {
    ...all,
    own,
    friend,
    gone,
    forge: () => {
      for (let key = 1; key <= 4; key += 1) {
        for (const isWriter of [true, false]) {
          const guid = ForgedParticipant.named(prefix).guid(isWriter, key);
          const base = next.get(isWriter ? ENTITY.PUBLICATIONS_WRITER : ENTITY.SUBSCRIPTIONS_WRITER) as number;
          for (let number = base; number <= base + 20; number += 1)
            own.network.inject(disposalOf(prefix, guid, isWriter, number), '10.0.0.2', false);
        }
      }
    },
    works: async (t) => {
      samples += 1;
      const text = `sample ${samples}`;
      own.participant.write(own.writer, Buffer.from(text));
      friend.participant.write(friend.writer, Buffer.from(text));
      ownEffortless.write(text);
      friendEffortless.write(text);
      await all.time.pass(1);
      for (const [name, reader] of Object.entries({ own: own.reader, friend: friend.reader, ownEffortless, friendEffortless }))
        t.equal(('reader' in reader ? reader.reader : reader).samples.at(-1), text, name);
    },
  };
}

function disposalOf(prefix: string, guid: Guid, isWriter: boolean, number: number): Buffer {
  const [writer, reader] = isWriter
    ? [ENTITY.PUBLICATIONS_WRITER, ENTITY.PUBLICATIONS_READER]
    : [ENTITY.SUBSCRIPTIONS_WRITER, ENTITY.SUBSCRIPTIONS_READER];
  const ends = [u16(0), u16(16), entity(reader), entity(writer), sn(number)];
  return message(prefix, submessage(0x15, [...ends, endOfInstance(guid)], { flags: 2 }));
}

t.test('the disposal of endpoints that are present has no effect', async (t) => {
  const { own, gone, time, forge, works } = await scene(t);
  await works(t);
  t.equal(own.participant.matchedCount, 4);
  forge();
  for (let second = 0; second < 10; second += 1) await works(t);
  for (let second = 0; second < 20; second += 1) {
    forge();
    await works(t);
  }
  forge();
  await time.pass(20);
  await works(t);
  t.same(gone, []);
  t.match(own.participant.lines.join('\n'), /disposal of an endpoint ignored/);
});

t.test('a participant that is lost after its endpoints were disposed of by another is lost', async (t) => {
  const { own, friend, gone, time, forge, works } = await scene(t);
  await works(t);
  forge();
  friend.network.isFrozen = true;
  for (let second = 0; second < 10; second += 1) {
    forge();
    await time.pass(1);
  }
  t.same(gone, []);
  await time.pass(60);
  t.same(gone, [false, false, false, false]);
  t.equal(own.participant.matchedCount, 0);
});

t.test('an interruption while endpoints are disposed of by another removes none', async (t) => {
  const { friend, gone, time, forge, works } = await scene(t);
  await works(t);
  friend.network.isFrozen = true;
  forge();
  await time.pass(8);
  friend.network.isFrozen = false;
  await time.pass(8);
  await works(t);
  t.same(gone, []);
});

t.test('an endpoint that was removed by its participant has left', async (t) => {
  const { side, time } = sides(t);
  const gone: boolean[] = [];
  const a = side('10.0.0.1', { onRemoteGone: (_, hasLeft) => gone.push(hasLeft) });
  const b = side('10.0.0.2');
  const writer = writerOf(a.participant, { topic: 'other' });
  const reader = readerOf(a.participant, { topic: 'further' });
  const removedReaders = [
    readerOf(b.participant, { topic: 'other', isAnnouncedToWritersOnly: true }),
    readerOf(b.participant, { topic: 'other' }),
  ];
  const removedWriter = writerOf(b.participant, { topic: 'further' });
  for (const { participant } of [a, b]) await participant.start();
  await time.pass(5);
  t.same([writer.state.readerCount, reader.state.writerCount], [2, 1]);
  for (const removed of removedReaders) b.participant.removeReader(removed);
  b.participant.removeWriter(removedWriter);
  await time.pass(4);
  t.same([writer.state.readerCount, reader.state.writerCount], [0, 0]);
  t.same(gone, [true, true, true]);
  const late = side('10.0.0.3');
  const [lateWriter, lateReader] = [writerOf(late.participant, { topic: 'other' }), readerOf(late.participant, { topic: 'further' })];
  await late.participant.start();
  await time.pass(5);
  t.same([lateWriter.state.readerCount, lateReader.state.writerCount], [0, 0]);
  b.participant.write(removedWriter, Buffer.from('late'));
  await time.pass(1);
  t.same([a.participant.lines, b.participant.lines], [[], []]);
});
