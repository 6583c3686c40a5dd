import t, { type Test } from 'tap';
import { only } from './testing/dissect.ts';
import { ForgedParticipant } from './testing/forged-participant.ts';
import { type Flight, type MemoryNetwork, Wire } from './testing/memory-network.ts';
import { participantOn, type TestParticipant, writerOf } from './testing/participants.ts';
import { VirtualTime } from './testing/virtual-time.ts';
import { ackNack, header } from './wire/message-writer.ts';
import { BUILTIN_ENDPOINTS, ENTITY, entityOf, READS_LIVELINESS, VENDOR } from './wire/protocol.ts';

const ADDRESS = '10.0.0.99';

interface Rig {
  readonly time: VirtualTime;
  readonly network: MemoryNetwork;
  readonly stranger: ForgedParticipant;
  readonly participant: TestParticipant;
  /** Heartbeats for the forged participant's reader of liveliness messages since the last call. */
  heartbeats(): { readonly first: number; readonly last: number }[];
  /** The forged participant's reader acknowledges all below 1, and may request a heartbeat. */
  acknowledge(count: number, isFinal: boolean): void;
}

async function rig(t: Test): Promise<Rig> {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const participant = participantOn(network, time.now);
  t.teardown(() => participant.stop());
  await participant.start();
  const stranger = new ForgedParticipant(1);
  const flights: Flight[] = [];
  wire.onFlight = (flight) => {
    flights.push(flight);
    const answer = flight.to === ADDRESS && stranger.answer(flight.datagram);
    if (answer) setTimeout(() => network.inject(answer, ADDRESS, false), 1);
  };
  return {
    time,
    network,
    stranger,
    participant,
    heartbeats: () => {
      const sent = flights.splice(0).filter(({ to }) => to === ADDRESS);
      return only(
        'heartbeat',
        sent.map(({ datagram }) => datagram),
      ).filter(({ sender, receiver }) => entityOf(sender) === ENTITY.LIVELINESS_WRITER && receiver === ENTITY.LIVELINESS_READER);
    },
    acknowledge: (count, isFinal) => {
      const answer = ackNack(ENTITY.LIVELINESS_READER, ENTITY.LIVELINESS_WRITER, { base: 1, numbers: [] }, count, isFinal);
      network.inject(Buffer.concat([header(stranger.prefix, VENDOR.FAST_DDS), answer]), ADDRESS, false);
    },
  };
}

/** An announcement of the forged participant with these built-in endpoints. */
function announcement(stranger: ForgedParticipant, builtin: number): Buffer {
  const datagram = stranger.announcement();
  const parameter = Buffer.from([0x58, 0, 4, 0, 0, 0, 0, 0]);
  parameter.writeUInt32LE(BUILTIN_ENDPOINTS, 4);
  const at = datagram.indexOf(parameter);
  if (at < 0) throw new Error('the announcement does not say which builtin endpoints it has');
  datagram.writeUInt32LE(builtin, at + 4);
  return datagram;
}

t.test('a reader of liveliness messages gets an empty heartbeat, and an answer to each request', async (t) => {
  const { time, network, stranger, heartbeats, acknowledge } = await rig(t);
  network.inject(announcement(stranger, BUILTIN_ENDPOINTS | READS_LIVELINESS), ADDRESS, true);
  await time.pass(0.05);
  t.match(heartbeats(), [{ first: 1, last: 0 }]);
  acknowledge(1, false);
  t.match(heartbeats(), [{ first: 1, last: 0 }], 'it had not got the first one');
  acknowledge(2, true);
  await time.pass(15);
  t.same(heartbeats(), [], 'nothing more once it has');
});

t.test('a participant without such a reader gets none', async (t) => {
  const { time, network, stranger, heartbeats } = await rig(t);
  network.inject(announcement(stranger, BUILTIN_ENDPOINTS), ADDRESS, true);
  await time.pass(5);
  t.same(heartbeats(), []);
});

t.test('readers that request more than the offered deadline or lease are not matched, and the policy is logged', async (t) => {
  const { time, network, stranger, participant } = await rig(t);
  const { guid, state } = writerOf(participant, { deadlineSeconds: 2, livelinessLeaseSeconds: 5 });
  network.inject(stranger.announcement(), ADDRESS, true);
  await time.pass(1);
  const requests = [
    {},
    { deadlineSeconds: 2, livelinessLeaseSeconds: 5 },
    { deadlineSeconds: 60 },
    { deadlineSeconds: 1.999 },
    { livelinessLeaseSeconds: 4.999 },
  ];
  for (const [i, request] of requests.entries()) {
    network.inject(stranger.heartbeat(ENTITY.SUBSCRIPTIONS_WRITER, 1, i + 1), ADDRESS, false);
    network.inject(stranger.endpoint(false, i + 1, request), ADDRESS, false);
  }
  t.same(
    state.readers.map((reader) => reader.guid),
    [1, 2, 3].map((key) => stranger.guid(false, key)),
    guid,
  );
  t.match(participant.lines, [/incompatible QoS: not matched .*DEADLINE/]);
});
