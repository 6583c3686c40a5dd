import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import type { ServiceRow } from './collected.ts';
import { countStatuses } from './counters.ts';
import { placeRows } from './timeline.ts';

const BEGIN = Date.parse('2026-03-01T00:00:00.000Z');

interface Step {
  readonly seconds: number;
  readonly slept: number;
  readonly reboots: boolean;
  readonly restarts: boolean;
  readonly answered: boolean;
  /** In percent of the sampling intervals. */
  readonly taken: number;
  /** In percent of the samples taken; null: the service is not on the graph. */
  readonly published: number | null;
}

const step: fc.Arbitrary<Step> = fc.record({
  seconds: fc.integer({ min: 1, max: 400 }),
  slept: fc.integer({ min: 0, max: 50 }),
  reboots: fc.nat(19).map((n) => n === 0),
  restarts: fc.nat(9).map((n) => n === 0),
  answered: fc.nat(4).map((n) => n > 0),
  taken: fc.integer({ min: 0, max: 100 }),
  published: fc.option(fc.integer({ min: 0, max: 100 }), { freq: 10 }),
});

function rowsOf(steps: readonly Step[]): ServiceRow[] {
  let [at, boot, bootedAt, run, slept, samples, sent] = [0, 0, -1000, 0, 0, 500, 500];
  return steps.map(({ answered, published, reboots, restarts, seconds, slept: sleeps, taken }) => {
    at += seconds;
    slept += Math.min(sleeps, seconds);
    const more = Math.floor(((seconds - Math.min(sleeps, seconds)) * taken) / 100);
    samples += more;
    sent += Math.floor((more * (published ?? 0)) / 100);
    if (reboots) {
      boot += 1;
      [bootedAt, slept] = [at - 5, 0];
    }
    if (reboots || restarts) {
      run += 1;
      samples = Math.floor((Math.min(5, seconds) * taken) / 100);
      sent = Math.floor((samples * (published ?? 0)) / 100);
    }
    const bootSeconds = at - bootedAt;
    return {
      node: 'unit_7',
      ms: BEGIN + at * 1000,
      answered,
      readings: { cpu_percent: 1, memory_percent: 1, disk_percent: 1, temperature: 1 },
      reason: '',
      bootId: `boot/${boot}`,
      bootSeconds,
      monotonicSeconds: bootSeconds - slept,
      version: '1',
      started: answered ? `run ${run}` : null,
      memoryBytes: 1,
      cpuSeconds: 1,
      hertz: answered ? 1 : null,
      samples: answered ? samples : null,
      published: answered && published !== null ? sent : null,
      open: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
    };
  });
}

const steps = fc.array(step, { minLength: 1, maxLength: 60 });

t.test('the counts never exceed the sampling intervals, and add up', async (t) => {
  fc.assert(
    fc.property(steps, (of) => {
      const rows = placeRows(rowsOf(of), BEGIN);
      const { ratePercent, reliability } = countStatuses(rows, 1);
      const { expected, lost, received, unobserved } = reliability;
      const awake = of.reduce((sum, { seconds, slept }) => sum + seconds - Math.min(slept, seconds), 0);
      if (Object.values(lost).some((count) => count < 0)) return false;
      if (expected > awake || received < 0 || unobserved < 0 || received + unobserved > expected) return false;
      if (lost.notSampled + lost.unknown + lost.notPublished + lost.notDelivered !== expected - received) return false;
      return ratePercent.length === rows.length && ratePercent.every((rate) => rate === null || (rate >= 0 && rate <= 100));
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
  t.pass('added up');
});

t.test('no sample is lost if every interval has its sample and nothing restarts', async (t) => {
  fc.assert(
    fc.property(steps, (of) => {
      const rows = rowsOf(of.map((one) => ({ ...one, answered: true, reboots: false, restarts: false, taken: 100, published: 100 })));
      const { expected, received } = countStatuses(placeRows(rows, BEGIN), 1).reliability;
      return received === expected;
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
  t.pass('none lost');
});

t.test('without rows nothing is expected', async (t) => {
  t.match(countStatuses([], 2).reliability, { by: null, hertz: 2, expected: 0, received: 0, unobserved: 0 });
});
