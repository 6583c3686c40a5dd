/** Power cuts. */
import { stringify } from 'yaml';
import { randomFrom } from '../../src/rtps/testing/random.ts';
import { CONFIG } from '../../testkit/container/appliance.ts';
import { Container } from '../../testkit/container/container.ts';
import { SUITES } from '../../testkit/container/images.ts';
import { builtPackage } from '../../testkit/container/package.ts';
import type { FaultBench, Figures } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';
import { CUT_BOOT, CutMachine, type Moment, type PowerCut } from './support/power-cuts.ts';

const fault = faultsOf('power');

/** Seed of the moments of the cuts; another seed gives other moments. */
const SEED = 20_261_121;
/** What is written once a minute may be a minute and the time of writing behind, by the time stamps of the samples. */
const MOST_LOST_SECONDS = 61;
const RECOVERY_TARGET_SECONDS = 15;

/** Cuts of one machine; the rarer moments take a minute each. */
const MOMENTS_OF_LANE: readonly Moment[] = [
  ...(['birth', 'birth', 'birth', 'start', 'alerts', 'minute', 'restart', 'kill', 'snapshot'] as const),
  ...(['start', 'start', 'minute', 'alerts', 'kill', 'restart', 'alerts', 'minute', 'snapshot'] as const),
  ...(['start', 'restart', 'kill', 'start', 'alerts', 'minute', 'alerts'] as const),
];
const LANES = 4;

const spread = (values: readonly number[], digits = 1): string => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN).toFixed(digits);
  return `${at(0)} / ${at(0.5)} / ${at(1)}`;
};
const present = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

async function evaluate(bench: FaultBench, all: readonly PowerCut[], lanes: readonly CutMachine[]): Promise<Figures> {
  const ends = await Promise.all(lanes.map((lane) => lane.finish()));
  const recoveries = [...present(all.map(({ recoverySeconds }) => recoverySeconds)), ...ends.map(({ recoverySeconds }) => recoverySeconds)];
  const lost = present(all.map(({ lostSeconds }) => lostSeconds));
  const received = all.reduce((sum, cut) => sum + cut.received, 0);
  const missing = all.flatMap((cut) => cut.missing);
  const problems = [
    ...all.flatMap((cut, index) => cut.problems.map((text) => `cut ${index + 1} (${cut.moment}): ${text}`)),
    ...ends.flatMap((end) => end.problems),
  ];
  const slowest = Math.max(...recoveries);
  bench.check('it measures by itself after every cut', recoveries.length > 0);
  bench.target(`within ${RECOVERY_TARGET_SECONDS} s of power on`, slowest <= RECOVERY_TARGET_SECONDS, `${slowest.toFixed(1)} s`);
  bench.check('no change of an alert that was received is lost', missing.length === 0 && received > 0, missing.slice(0, 5));
  bench.check('at most the last minute of samples is lost', Math.max(...lost) <= MOST_LOST_SECONDS, `${Math.max(...lost)} s`);
  bench.check('the database is whole, with its earlier content, after every cut', problems.length === 0, problems.slice(0, 5));
  const observed = [
    `${all.length} cuts on ${lanes.length === 1 ? 'one machine' : `${lanes.length} machines`} (seed ${SEED})`,
    `${received} changes of alerts received, all on the disk but ${missing.length}`,
    `of the samples the last ${spread(lost)} s lost, recovery after ${spread(recoveries)} s (least / median / most)`,
  ].join('; ');
  await bench.untilHealthy(Date.now());
  const samplesLost = all.reduce((sum, cut) => sum + cut.lostSamples, 0);
  return { observed, recoverySeconds: slowest, samplesLost, alertsLost: missing.length };
}

async function withLanes(bench: FaultBench, moments: readonly Moment[], count: number): Promise<Figures> {
  const { file } = await builtPackage();
  const all: PowerCut[] = [];
  const lane = async (index: number): Promise<CutMachine> => {
    const random = randomFrom(SEED + index);
    if (index === 0) return CutMachine.take(bench.machine, random);
    const { config, ...boot } = CUT_BOOT;
    const suite = SUITES[(SUITES.indexOf(bench.machine.suite) + index) % SUITES.length] ?? bench.machine.suite;
    const files = { ...boot.files, [CONFIG]: stringify(config) };
    return CutMachine.take(await Container.boot(bench, { ...boot, suite, installed: file, files }), random);
  };
  const lanes: CutMachine[] = [];
  for (let index = 0; index < count; index += 1) lanes.push(await lane(index));
  await Promise.all(
    lanes.map(async (machine, index) => {
      // Each one begins at another moment, so that they do not all wait for the minute at the same time.
      for (const moment of [...moments.slice(index * 2), ...moments.slice(0, index * 2)]) {
        const cut = await machine.cut(moment);
        all.push(cut);
        if (cut.problems.length + cut.missing.length > 0) bench.comment(`cut ${all.length}: ${JSON.stringify(cut)}`);
        else if (all.length % 10 === 0) bench.comment(`${all.length} cuts`);
      }
    }),
  );
  return evaluate(bench, all, lanes);
}

const EXPECTED =
  'it starts by itself; no change of an alert that was received is lost, at most the last minute of samples, and SQLite finds nothing wrong';
const boot = { ...CUT_BOOT, topic: false, alertLoad: false, alone: true } as const;

fault('power-cut-5', { core: true, expected: `five power cuts: ${EXPECTED}`, boot }, (bench) =>
  withLanes(bench, ['birth', 'start', 'alerts', 'kill', 'restart'], 1),
);

fault(
  'power-cut-100',
  {
    expected: `a hundred power cuts at random moments, at the first start, at later ones, while alerts are stored, samples written, the service restarted or killed, the database copied: ${EXPECTED}`,
    boot,
  },
  (bench) => withLanes(bench, MOMENTS_OF_LANE, LANES),
);
