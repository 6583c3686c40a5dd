import { stringify } from 'yaml';
import { randomFrom } from '../../../src/rtps/testing/random.ts';
import { CONFIG } from '../../../testkit/container/appliance.ts';
import { Container } from '../../../testkit/container/container.ts';
import { SUITES } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';
import type { Arena } from '../arena.ts';
import type { Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { CUT_BOOT, type Cut, CutMachine, type Moment } from './power-cuts.ts';

const GROUP = 'power';
/** Of the moments of the cuts; another one tries others. */
const SEED = 20_261_121;
/** What is written once a minute may be a minute and as long as its writing takes behind. */
const MOST_LOST_SECONDS = 61;
const MOST_BACK_SECONDS = 15;

/** Of one machine; the rarer ones take a minute each. */
const LANE: readonly Moment[] = [
  ...(['birth', 'birth', 'birth', 'start', 'alerts', 'minute', 'restart', 'kill', 'snapshot'] as const),
  ...(['start', 'start', 'minute', 'alerts', 'kill', 'restart', 'alerts', 'minute', 'snapshot'] as const),
  ...(['start', 'restart', 'kill', 'start', 'alerts', 'minute', 'alerts'] as const),
];
const LANES = 4;

async function cuts(lane: CutMachine, moments: readonly Moment[], done: (cut: Cut) => void): Promise<void> {
  for (const moment of moments) done(await lane.cut(moment));
}

const spread = (values: readonly number[], digits = 1): string => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN).toFixed(digits);
  return `${at(0)} / ${at(0.5)} / ${at(1)}`;
};
const present = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

async function judge(arena: Arena, all: readonly Cut[], lanes: readonly CutMachine[]): Promise<Figures> {
  const ends = await Promise.all(lanes.map((lane) => lane.finish()));
  const back = [...present(all.map(({ backSeconds }) => backSeconds)), ...ends.map(({ backSeconds }) => backSeconds)];
  const lost = present(all.map(({ lostSeconds }) => lostSeconds));
  const told = all.reduce((sum, cut) => sum + cut.told, 0);
  const missing = all.flatMap((cut) => cut.missing);
  const problems = [
    ...all.flatMap((cut, index) => cut.problems.map((text) => `cut ${index + 1} (${cut.moment}): ${text}`)),
    ...ends.flatMap((end) => end.problems),
  ];
  const samplesLost = all.reduce((sum, cut) => sum + cut.lostSamples, 0);
  arena.must('it measures by itself after every cut, within 15 s of the power', Math.max(...back) <= MOST_BACK_SECONDS, spread(back));
  arena.must('no change of an alert that anybody was told is lost', missing.length === 0 && told > 0, missing.slice(0, 5));
  arena.must('at most the last minute of samples is lost', Math.max(...lost) <= MOST_LOST_SECONDS, `${Math.max(...lost)} s`);
  arena.must('the database is whole, and holds what it held, after every cut', problems.length === 0, problems.slice(0, 5));
  const observed = [
    `${all.length} cuts on ${lanes.length === 1 ? 'one machine' : `${lanes.length} machines`} (seed ${SEED})`,
    `${told} changes of alerts told, all on the disk but ${missing.length}`,
    `of the samples the last ${spread(lost)} s lost, back after ${spread(back)} s (least / median / most)`,
  ].join('; ');
  await arena.well(Date.now(), 30);
  return { observed, recoverySeconds: Math.max(...back), samplesLost, alertsLost: missing.length };
}

async function withLanes(arena: Arena, moments: readonly Moment[], count: number): Promise<Figures> {
  const { file } = await builtPackage();
  const all: Cut[] = [];
  const make = async (index: number): Promise<CutMachine> => {
    const random = randomFrom(SEED + index);
    if (index === 0) return CutMachine.take(arena.machine, random);
    const endings: (() => unknown)[] = [];
    arena.afterwards(async () => {
      for (const ending of endings) await ending();
    });
    const { config, ...boot } = CUT_BOOT;
    const scope = { teardown: (ending: () => unknown): void => void endings.unshift(ending) };
    const suite = SUITES[(SUITES.indexOf(arena.machine.suite) + index) % SUITES.length] ?? arena.machine.suite;
    const machine = await Container.boot(scope, { ...boot, suite, installed: file, files: { ...boot.files, [CONFIG]: stringify(config) } });
    return CutMachine.take(machine, random);
  };
  const lanes: CutMachine[] = [];
  for (let index = 0; index < count; index += 1) lanes.push(await make(index));
  await Promise.all(
    lanes.map((lane, index) =>
      // Each begins at another place, so that not all wait for the minute at once.
      cuts(lane, [...moments.slice(index * 2), ...moments.slice(0, index * 2)], (cut) => {
        all.push(cut);
        if (cut.problems.length + cut.missing.length > 0) arena.progress(`cut ${all.length}: ${JSON.stringify(cut)}`);
        else if (all.length % 10 === 0) arena.progress(`${all.length} cuts`);
      }),
    ),
  );
  return judge(arena, all, lanes);
}

const EXPECTED =
  'it starts by itself; no change of an alert that was told is lost, at most the last minute of samples, and SQLite finds nothing wrong';

export const powerCuts: Fault = {
  name: 'power-cut-100',
  group: GROUP,
  core: false,
  expected: `a hundred power cuts at random moments, at the first start, at later ones, while alerts are stored, samples written, the service restarted or killed, the database copied: ${EXPECTED}`,
  boot: { ...CUT_BOOT, topic: false, tide: false, alone: true },
  run: (arena) => withLanes(arena, LANE, LANES),
};

export const powerCutsOfCore: Fault = {
  name: 'power-cut-5',
  group: GROUP,
  core: true,
  expected: `five power cuts: ${EXPECTED}`,
  boot: { ...CUT_BOOT, topic: false, tide: false, alone: true },
  run: (arena) => withLanes(arena, ['birth', 'start', 'alerts', 'kill', 'restart'], 1),
};
