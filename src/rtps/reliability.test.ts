import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { randomFrom } from './testing/random.ts';
import { type SimulatedReader, Simulation } from './testing/simulation.ts';

// With EDGE_HEALTH_LONG=1 it takes minutes.
t.setTimeout(900_000);

/** The lifetime of a reader, in seconds from the start: it joins, leaves (and comes back as another one), and is frozen. */
interface Life {
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly joins: number;
  readonly stays: number;
  readonly restarts: number;
  readonly freezes: number | null;
}

interface Scenario {
  readonly seed: number;
  readonly loss: number;
  readonly duplication: number;
  readonly longestDelaySeconds: number;
  readonly depth: number;
  readonly transientLocal: boolean;
  readonly isPeriodic: boolean;
  readonly lives: readonly Life[];
  /** Pause before each sample, its octets, and its reader: the index of a life; null: all. */
  readonly samples: readonly { readonly pause: number; readonly octets: number; readonly only: number | null }[];
  readonly writerFreezes: number | null;
}

const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
const moment = fc.double({ min: 0, max: 30, noNaN: true });
const life: fc.Arbitrary<Life> = fc.record({
  reliable: fc.boolean(),
  transientLocal: fc.boolean(),
  joins: fc.double({ min: 0, max: 6, noNaN: true }),
  stays: fc.oneof(fc.double({ min: 0.01, max: 3, noNaN: true }), fc.double({ min: 0.01, max: 60, noNaN: true })),
  restarts: fc.nat(3),
  freezes: rarely(moment),
});
const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  loss: fc.double({ min: 0, max: 0.3, noNaN: true }),
  duplication: fc.double({ min: 0, max: 0.3, noNaN: true }),
  longestDelaySeconds: fc.double({ min: 0, max: 0.2, noNaN: true }),
  depth: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(1000)),
  transientLocal: fc.boolean(),
  isPeriodic: fc.boolean(),
  lives: fc.array(life, { minLength: 1, maxLength: 4, size: 'max' }),
  samples: fc.array(
    fc.record({
      pause: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.1, noNaN: true }), fc.double({ min: 0, max: 2, noNaN: true })),
      octets: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 4, max: 1280 }) },
        { weight: 1, arbitrary: fc.integer({ min: 1281, max: 12_000 }) },
      ),
      only: rarely(fc.nat(3)),
    }),
    { maxLength: 60, size: 'max' },
  ),
  writerFreezes: rarely(moment),
});

const FREEZE_SECONDS = 30;
const END = 400;

function play(plan: Scenario): { simulation: Simulation; staying: SimulatedReader[]; all: SimulatedReader[]; joins: number } {
  const { seed, loss, duplication, longestDelaySeconds, depth, transientLocal, isPeriodic, lives, samples, writerFreezes } = plan;
  const simulation = new Simulation(
    { random: randomFrom(seed), loss, duplication, longestDelaySeconds },
    { depth, transientLocal, isPeriodic },
  );
  const current: (SimulatedReader | null)[] = lives.map(() => null);
  const all: SimulatedReader[] = [];
  const random = randomFrom(seed + 1);
  let joins = 0;
  lives.forEach(({ joins: first, stays, restarts, freezes, ...qos }, i) => {
    for (let time = first, n = 0; n <= restarts; n += 1, time += stays + 0.5) {
      simulation.at(time, () => {
        const reader = simulation.join(qos, random() * 0.3);
        current[i] = reader;
        all.push(reader);
        joins += 1;
      });
      if (n < restarts) {
        simulation.at(time + stays, () => {
          const leaver = current[i];
          if (leaver) simulation.leave(leaver);
          current[i] = null;
        });
      }
    }
    if (freezes !== null) {
      simulation.at(freezes, () => {
        const frozen = current[i];
        if (frozen) simulation.freeze(frozen, FREEZE_SECONDS);
      });
    }
  });
  if (writerFreezes !== null) simulation.at(writerFreezes, () => simulation.freeze('writer', FREEZE_SECONDS));
  let time = 0;
  for (const { pause, octets, only } of samples) {
    time += pause;
    simulation.at(time, () => {
      // A change for a reader that is not matched is for no reader.
      simulation.write(octets, only === null ? null : (current[only % lives.length]?.guid ?? 'nobody'));
    });
  }
  simulation.runUntil(END);
  return { simulation, staying: current.filter((reader) => reader !== null), all, joins };
}

t.test('delivery over any channel', async () => {
  fc.assert(
    fc.property(scenario, (plan) => {
      const { simulation, staying, all, joins } = play(plan);
      const kept = new Set(simulation.writer.history.map(({ sequenceNumber }) => sequenceNumber));
      for (const { received } of all) {
        for (let i = 1; i < received.length; i += 1)
          assert.ok((received[i] as number) > (received[i - 1] as number), 'in order, each once');
      }
      for (const reader of all) {
        const may = new Set(reader.written);
        const wantsHistory = plan.transientLocal && reader.transientLocal;
        for (const number of reader.received)
          assert.ok(may.has(number) || (wantsHistory && number <= reader.joinedAfter), 'only what is for it');
      }
      for (const { reliable, received, written, ...reader } of staying) {
        if (!reliable) continue;
        const got = new Set(received);
        // Everything written for it while it was matched, as far as the history reached back when it could be sent again.
        const due = written.filter((number) => kept.has(number) || plan.depth >= plan.samples.length);
        assert.deepEqual(
          due.filter((number) => !got.has(number)),
          [],
          'everything that was still to be had',
        );
        if (plan.transientLocal && reader.transientLocal) {
          const history = simulation.writer.history.filter(({ only }) => only === null || only === reader.guid);
          assert.deepEqual(
            history.filter(({ sequenceNumber }) => !got.has(sequenceNumber)).map(({ sequenceNumber }) => sequenceNumber),
            [],
          );
        }
      }
      // All traffic has ended.
      const { datagrams } = simulation;
      assert.ok(simulation.runUntil(END + 3600), 'settled');
      assert.equal(simulation.datagrams, datagrams);
      const fragments = plan.samples.reduce((sum, { octets }) => sum + Math.ceil(octets / 1280), 0);
      const most = 100 * (joins + 1) + 12 * (joins + 1) * (fragments + plan.samples.length);
      assert.ok(datagrams <= most, `${datagrams} datagrams, ${most} at most`);
    }),
    { numRuns: runs(60, 2000), seed: SEED },
  );
});

t.test('no repetition on a lossless channel', async (t) => {
  const simulation = new Simulation(
    { random: randomFrom(1), loss: 0, duplication: 0, longestDelaySeconds: 0 },
    { depth: 10, transientLocal: true },
  );
  const readers = [0, 1].map(() => simulation.join({ reliable: true, transientLocal: true }, 0));
  simulation.runUntil(10);
  const before = simulation.datagrams;
  for (let i = 0; i < 100; i += 1) simulation.at(10 + i, () => simulation.write(200, null));
  simulation.runUntil(200);
  for (const { received } of readers) t.equal(received.length, 100);
  t.equal(simulation.datagrams - before, 2 * 2 * 100, 'the sample with a heartbeat, and its acknowledgement');
});

t.test('only lost fragments are requested', async (t) => {
  for (let lost = 1; lost <= 8; lost += 1) {
    let sent = 0;
    const channel = { random: () => 0.5, loss: 0, duplication: 0, longestDelaySeconds: 0 };
    const simulation = new Simulation(channel, { depth: 10, transientLocal: true });
    const reader = simulation.join({ reliable: true, transientLocal: true }, 0);
    simulation.runUntil(10);
    simulation.at(11, () => {
      // The channel draws once for each datagram: this one is lost.
      channel.random = () => {
        sent += 1;
        return sent === 2 * lost ? -1 : 0.5;
      };
      simulation.write(10_000, null);
      channel.random = () => 0.5;
    });
    const before = simulation.octets;
    simulation.runUntil(30);
    t.same(reader.received, [1], `fragment ${lost}`);
    const again = simulation.octets - before - 10_000;
    t.ok(again < 3200, `${again} octets more than the sample`);
  }
});

t.test('high rate, long delay and losses', async (t) => {
  const simulation = new Simulation(
    { random: randomFrom(3), loss: 0.05, duplication: 0, longestDelaySeconds: 0.05 },
    { depth: 2000, transientLocal: true },
  );
  const reader = simulation.join({ reliable: true, transientLocal: true }, 0);
  simulation.runUntil(5);
  const before = simulation.datagrams;
  for (let i = 0; i < 2000; i += 1) simulation.at(5 + i / 1000, () => simulation.write(200, null));
  simulation.runUntil(60);
  t.same(
    reader.received,
    Array.from({ length: 2000 }, (_, i) => i + 1),
  );
  t.ok(simulation.datagrams - before < 20_000, `${simulation.datagrams - before} datagrams for 2000 samples`);
});
