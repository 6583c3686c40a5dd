import t from 'tap';
import { Wire } from './testing/memory-network.ts';
import { participantOn, readerOf, writerOf } from './testing/participants.ts';
import { VirtualTime } from './testing/virtual-time.ts';

t.test('a reader created later is matched once the writers are announced again, and its participant stays', async (t) => {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const [first, second] = ['10.0.0.1', '10.0.0.2'].map((lan) => participantOn(wire.host({ lan }), time.now));
  if (!first || !second) return;
  t.teardown(() => [first, second].forEach((participant) => void participant.stop()));
  const writer = writerOf(first);
  await Promise.all([first.start(), second.start()]);
  await time.pass(2);
  first.write(writer, Buffer.from('one'));
  for (let i = 0; i < 2; i += 1) {
    const reader = readerOf(second);
    await time.pass(5);
    t.same(reader.samples, [], 'writers without a reader are not stored');
    second.rediscoverWriters();
    await time.pass(2);
    t.same(reader.samples, ['one']);
    second.rediscoverWriters([first.prefix]);
    await time.pass(2);
    t.same([reader.samples, reader.state.writerCount, writer.state.readerCount], [['one'], 1, 1], 'nothing is received twice');
    second.removeReader(reader);
    await time.pass(5);
    t.same([writer.state.readerCount, second.matchedCount], [0, 0]);
  }
});
